import HTTPTypes
public import PostcardForm

extension UploadProblem {
    /// What a decoder found.
    public init(_ error: FormDecodingError) {
        self.init(
            status: .init(code: error.status), code: error.code.rawValue, detail: error.message, fix: error.advice)
        offset = error.offset
        partIndex = error.partIndex
    }

    /// What an error of a handler that reads a form is to who sent it; `nil` where it is none of the form's.
    init?(anyOf error: any Error) {
        switch error {
        case let problem as UploadProblem: self = problem
        case let problem as FormProblem: self.init(problem)
        case let error as FormDecodingError: self.init(error)
        case let error as UploadStoreError: self = .store(error)
        default: return nil
        }
    }
}
