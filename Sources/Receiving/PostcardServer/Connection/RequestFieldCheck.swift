import HTTPTypes
import NIOHTTP1
import PostcardForm
import PostcardReception

/// Checks the target and the fields of a request before a route compares or searches them.
enum RequestFieldCheck {
    /// Why a request of HTTP/1 is refused for its fields or its target; `nil` if it is not.
    static func problem(of head: HTTPRequestHead) -> UploadProblem? {
        problem(ofTarget: head.uri, head.headers.lazy.map { ($0.name, $0.value) })
    }

    /// Why a request of HTTP/2 is refused for its fields or its target; `nil` if it is not.
    static func problem(of request: HTTPRequest) -> UploadProblem? {
        let fields = [("Host", request.authority ?? ""), ("scheme", request.scheme ?? "")]
        return problem(ofTarget: request.path ?? "", fields + request.headerFields.map { ($0.name.rawName, $0.value) })
    }

    private static func problem(
        ofTarget target: String, _ fields: some Sequence<(name: String, value: String)>
    ) -> UploadProblem? {
        if let fault = RequestFieldGrammar.fault(ofTarget: target.utf8) { return UploadProblem(fault, of: "target") }
        for (name, value) in fields {
            if let fault = RequestFieldGrammar.fault(ofField: name, value.utf8) {
                return UploadProblem(fault, of: name)
            }
        }
        return nil
    }
}

extension UploadProblem {
    fileprivate init(_ fault: RequestFieldGrammar.Fault, of field: String) {
        self.init(
            status: HTTPResponse.Status(code: fault.code.status), code: fault.code.rawValue,
            detail: fault.message(of: field), advice: fault.advice)
        if case .tooLong(let maximumBytes, _) = fault {
            limit = Limit(name: "maximumFieldBytes", value: Int64(maximumBytes))
        }
    }
}
