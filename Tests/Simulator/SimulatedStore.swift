import Foundation
import NIOCore
import NIOHTTP1
import PostcardS3

/// The objects of a bucket. A request is carried out at once; ``SimulatedNetwork`` decides when.
final class SimulatedStore {
    struct Object {
        let body: ByteBuffer
        let metadata: [(name: String, value: String)]
        let modified: Double
        /// The time as in a listing.
        let modifiedText: String
        /// The call of a receiver that has written it.
        let call: Int

        init(body: ByteBuffer, metadata: [(name: String, value: String)], modified: Double, call: Int) {
            self.body = body
            self.metadata = metadata
            self.modified = modified
            modifiedText = SimulatedStore.text(modified)
            self.call = call
        }
    }

    struct OpenUpload {
        let key: String
        let metadata: [(name: String, value: String)]
        let begun: Double
        var parts: [Int: ByteBuffer] = [:]
    }

    private(set) var objects: [String: Object] = [:]
    /// In order.
    private(set) var keys: [String] = []
    private(set) var open: [String: OpenUpload] = [:]
    private var lastUpload = 0
    /// The maximum number of entries in a listing.
    var pageSize: Int
    let scheduler: Scheduler
    /// Called before an object is written or removed.
    var changes: (_ key: String, _ old: Object?, _ new: Object?) -> Void = { _, _, _ in }

    /// The time of the store at the beginning of the simulation, in seconds since 1970.
    static let start = 1_800_000_000.0

    init(_ scheduler: Scheduler, pageSize: Int) {
        self.scheduler = scheduler
        self.pageSize = pageSize
    }

    var date: Date { Date(timeIntervalSince1970: Self.start + scheduler.now) }

    // MARK: - Requests

    func respond(to request: S3Request, signed: Date, call: Int) -> S3Response {
        guard abs(signed.timeIntervalSince(date)) <= 900 else { return error(403, "RequestTimeTooSkewed", request) }
        let query = Dictionary(request.query.map { ($0.name, $0.value) }, uniquingKeysWith: { first, _ in first })
        switch request.method {
        case .PUT: return put(request, query, call)
        case .POST: return post(request, query, call)
        case .HEAD: return objects[request.key].map { found($0, ByteBuffer(), 200) } ?? error(404, "", request)
        case .GET where request.key.isEmpty: return query["uploads"] == nil ? list(query) : listUploads(query)
        case .GET: return get(request)
        default:
            if let upload = query["uploadId"] {
                guard open.removeValue(forKey: upload) != nil else { return error(404, "NoSuchUpload", request) }
            } else {
                write(request.key, nil)
            }
            return response(204)
        }
    }

    func error(_ status: HTTPResponse.Status, _ code: String, _ request: S3Request) -> S3Response {
        guard request.method != .HEAD else { return response(status) }
        return response(status, ByteBuffer(string: "<Error><Code>\(code)</Code><Message></Message></Error>"))
    }

    private func response(
        _ status: HTTPResponse.Status, _ body: ByteBuffer = ByteBuffer(), _ headers: [(String, String)] = []
    ) -> S3Response {
        S3Response(status: status, headers: HTTPHeaders([("date", Self.field(date))] + headers), body: body)
    }

    private func found(_ object: Object, _ body: ByteBuffer, _ status: HTTPResponse.Status, range: String? = nil)
        -> S3Response
    {
        var headers = object.metadata.map { ("x-amz-meta-\($0.name)", $0.value) }
        headers.append(("content-length", "\(status == 206 ? body.readableBytes : object.body.readableBytes)"))
        if let range { headers.append(("content-range", range)) }
        return response(status, body, headers)
    }

    private static func metadata(_ request: S3Request) -> [(name: String, value: String)] {
        let prefix = "x-amz-meta-"
        return request.headers.filter { $0.name.hasPrefix(prefix) }
            .map { (String($0.name.dropFirst(prefix.count)), $0.value) }
    }

    private func put(_ request: S3Request, _ query: [String: String], _ call: Int) -> S3Response {
        if let upload = query["uploadId"] {
            guard open[upload] != nil else { return error(404, "NoSuchUpload", request) }
            open[upload]?.parts[Int(query["partNumber"] ?? "") ?? 0] = request.body
            return response(200, ByteBuffer(), [("etag", "\"\(request.body.hashValue)\"")])
        }
        if request.headers.contains(where: { $0.name == "if-none-match" }), objects[request.key] != nil {
            return error(412, "PreconditionFailed", request)
        }
        write(
            request.key,
            Object(
                body: request.body, metadata: Self.metadata(request), modified: scheduler.now, call: call))
        return response(200)
    }

    private func post(_ request: S3Request, _ query: [String: String], _ call: Int) -> S3Response {
        guard let upload = query["uploadId"] else {
            lastUpload += 1
            open["u\(lastUpload)"] = OpenUpload(
                key: request.key, metadata: Self.metadata(request), begun: scheduler.now)
            return response(200, ByteBuffer(string: "<R><UploadId>u\(lastUpload)</UploadId></R>"))
        }
        guard let known = open[upload] else { return error(404, "NoSuchUpload", request) }
        let named = String(buffer: request.body).split(separator: "<PartNumber>").dropFirst()
            .compactMap { Int($0.prefix { $0.isNumber }) }
        var body = ByteBuffer()
        for number in named {
            guard let part = known.parts[number] else { return error(400, "InvalidPart", request) }
            body.writeImmutableBuffer(part)
        }
        open[upload] = nil
        write(
            known.key,
            Object(body: body, metadata: known.metadata, modified: scheduler.now, call: call))
        return response(200, ByteBuffer(string: "<CompleteMultipartUploadResult/>"))
    }

    private func get(_ request: S3Request) -> S3Response {
        guard let object = objects[request.key] else { return error(404, "NoSuchKey", request) }
        guard let range = request.headers.first(where: { $0.name == "range" })?.value.dropFirst("bytes=".count) else {
            return found(object, object.body, 200)
        }
        let bounds = range.split(separator: "-").compactMap { Int($0) }
        let count = object.body.readableBytes
        guard bounds.count == 2, bounds[0] < count else { return error(416, "InvalidRange", request) }
        let end = min(bounds[1] + 1, count)
        let body = object.body.getSlice(at: object.body.readerIndex + bounds[0], length: end - bounds[0])
        return found(object, body ?? ByteBuffer(), 206, range: "bytes \(bounds[0])-\(end - 1)/\(count)")
    }

    private func list(_ query: [String: String]) -> S3Response {
        let (prefix, last) = (query["prefix"] ?? "", query["start-after"] ?? "")
        let limit = min(Int(query["max-keys"] ?? "") ?? 1000, pageSize)
        var text = "<ListBucketResult>"
        var count = 0
        var isTruncated = false
        for key in keys[place(of: max(prefix, last))...] where key > last {
            guard key.hasPrefix(prefix) else { break }
            guard count < limit else {
                isTruncated = true
                break
            }
            count += 1
            guard let object = objects[key] else { continue }
            text += "<Contents><Key>\(key)</Key><Size>\(object.body.readableBytes)</Size>"
            text += "<LastModified>\(object.modifiedText)</LastModified></Contents>"
        }
        text += "<IsTruncated>\(isTruncated)</IsTruncated></ListBucketResult>"
        return response(200, ByteBuffer(string: text))
    }

    private func listUploads(_ query: [String: String]) -> S3Response {
        var text = "<ListMultipartUploadsResult>"
        for (id, upload) in open.sorted(by: { $0.key < $1.key }) where upload.key.hasPrefix(query["prefix"] ?? "") {
            text += "<Upload><Key>\(upload.key)</Key><UploadId>\(id)</UploadId>"
            text += "<Initiated>\(Self.text(upload.begun))</Initiated></Upload>"
        }
        return response(200, ByteBuffer(string: text + "</ListMultipartUploadsResult>"))
    }

    // MARK: - Objects

    private func place(of key: String) -> Int {
        var (low, high) = (0, keys.count)
        while low < high {
            let middle = (low + high) / 2
            if keys[middle] < key { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private func write(_ key: String, _ object: Object?) {
        let old = objects[key]
        guard old != nil || object != nil else { return }
        changes(key, old, object)
        objects[key] = object
        switch (old, object) {
        case (nil, .some): keys.insert(key, at: place(of: key))
        case (.some, nil): keys.remove(at: place(of: key))
        default: break
        }
    }

    // MARK: - Times

    private static func civil(_ seconds: Double) -> (parts: [Int], milliseconds: Int) {
        let total = Int(((start + seconds) * 1000).rounded(.down))
        let (day, time) = (total / 86_400_000, total % 86_400_000)
        // Days since 0000-03-01, in eras of 400 years.
        let shifted = day + 719_468
        let era = shifted / 146_097
        let inEra = shifted % 146_097
        let year = (inEra - inEra / 1460 + inEra / 36_524 - inEra / 146_096) / 365
        let inYear = inEra - (365 * year + year / 4 - year / 100)
        let month = (5 * inYear + 2) / 153
        let number = month < 10 ? month + 3 : month - 9
        return (
            [
                year + era * 400 + (number <= 2 ? 1 : 0), number, inYear - (153 * month + 2) / 5 + 1, time / 3_600_000,
                time / 60_000 % 60, time / 1000 % 60,
            ], time % 1000
        )
    }

    private static func padded(_ number: Int, _ digits: Int = 2) -> String {
        let text = String(number)
        return String(repeating: "0", count: max(digits - text.count, 0)) + text
    }

    /// A time as in a listing.
    static func text(_ seconds: Double) -> String {
        let (parts, milliseconds) = civil(seconds)
        let words = parts.map { padded($0) }
        return "\(words[0])-\(words[1])-\(words[2])T\(words[3]):\(words[4]):\(words[5]).\(padded(milliseconds, 3))Z"
    }

    /// A time as in the field `Date`. The day of the week is not looked at.
    static func field(_ date: Date) -> String {
        let parts = civil(date.timeIntervalSince1970 - start).parts
        let months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
        let time = parts[3...].map { padded($0) }.joined(separator: ":")
        return "Mon, \(padded(parts[2])) \(months[parts[1] - 1]) \(parts[0]) \(time) GMT"
    }
}
