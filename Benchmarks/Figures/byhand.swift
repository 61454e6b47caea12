// A form as apps write it by hand: the file in memory, the body in memory, and URLSession.
import Foundation

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

guard CommandLine.arguments.count == 3, let url = URL(string: CommandLine.arguments[1]) else { exit(64) }
let file = URL(filePath: CommandLine.arguments[2])
let boundary = UUID().uuidString
var body = Data()
body.append(Data("--\(boundary)\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\n초코\r\n".utf8))
body.append(Data("--\(boundary)\r\n".utf8))
body.append(
    Data("Content-Disposition: form-data; name=\"file\"; filename=\"\(file.lastPathComponent)\"\r\n\r\n".utf8))
body.append(try Data(contentsOf: file))
body.append(Data("\r\n--\(boundary)--\r\n".utf8))
var request = URLRequest(url: url)
request.httpMethod = "POST"
request.setValue("multipart/form-data; boundary=\(boundary)", forHTTPHeaderField: "Content-Type")
let (_, response) = try await URLSession.shared.upload(for: request, from: body)
exit((response as? HTTPURLResponse)?.statusCode == 201 ? 0 : 1)
