// Tells the person what went wrong and what to try, and whether the form may be sent again.
import Foundation
import PostcardClient

guard let url = URL(string: "http://127.0.0.1:8080/uploads") else { exit(64) }
var form = MultipartForm()
form.append(filesAt: CommandLine.arguments.dropFirst().map { URL(filePath: $0) }, named: "petImage")

do {
    try await UploadClient().upload(form, to: url)
} catch let error as UploadError {
    print(error.message)
    if let advice = error.advice { print(advice) }
    if let problem = error.problem { print(problem.title ?? problem.type, problem["code"]?.text ?? "") }
    switch error.delivery {
    case .neverArrived: print("No server has it: send it again whenever you like.")
    case .refused: print("The server does not want it as it is.")
    case .responseLost: print("It may have arrived: ask the server first.")
    case .accepted: print("The server has it: do not send it again.")
    }
}
