import Foundation
import HTTPTypes
import Hummingbird
import PostcardForm
import PostcardReceivingSupport
import PostcardWire
import PostcardServer
import PostcardTestSupport
import Synchronization
import Testing

/// An app that notes the forms it is called with, and fails with the given errors first.
private final class Notes: Sendable {
    struct Note: Equatable {
        let id: UploadID
        let fields: [UploadRecord.Field]
        let isRepetition: Bool
        let agent: String?
        let path: String
    }

    private let state: Mutex<(notes: [Note], failures: [any Error])>

    init(failingWith failures: [any Error] = []) {
        state = Mutex(([], failures))
    }

    var all: [Note] { state.withLock(\.notes) }

    func add(_ upload: CommittedUpload, _ head: HTTPRequest, _ context: BasicRequestContext) throws {
        let note = Note(
            id: upload.record.id, fields: upload.record.fields, isRepetition: upload.isRepetition,
            agent: head.headerFields[.userAgent], path: context.endpointPath ?? "")
        let failure = state.withLock { state -> (any Error)? in
            state.notes.append(note)
            return state.failures.isEmpty ? nil : state.failures.removeFirst()
        }
        if let failure { throw failure }
    }
}

private struct DatabaseFailure: Error {}

@Suite(.timeLimit(.minutes(10)))
struct StoredFormTests {
    private func withUploads(
        notedBy notes: Notes, rules: FormRules? = nil,
        _ body: (RunningReceiver, LocalUploadStore) async throws -> Void
    ) async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let router = Router()
            var options = UploadOptions()
            options.rules = rules
            router.addUploads(to: store, options: options) { try notes.add($0, $1, $2) }
            try await withApplication(router: router) { try await body($0, store) }
        }
    }

    private static let keyed = Form.request(body: Form.small, fields: ["Idempotency-Key: k", "User-Agent: camera"])

    @Test func `the app is called with each stored form, and again when a client repeats it under its key`()
        async throws
    {
        let notes = Notes()
        try await withUploads(notedBy: notes) { receiver, store in
            let first = try await receiver.exchange(Self.keyed)
            #expect(first.status == 201)
            #expect(try await receiver.exchange(Self.keyed).body == first.body)
            let record = try UploadRecord(json: Data(first.body.utf8))
            #expect(
                notes.all
                    == [false, true].map {
                        Notes.Note(
                            id: record.id, fields: [UploadRecord.Field(name: "a", value: "value")], isRepetition: $0,
                            agent: "camera", path: "/uploads")
                    })
            #expect(try await store.identifiers(limit: 10, after: nil) == [record.id])
        }
    }

    @Test func `the app is not called with a form that is refused`() async throws {
        let notes = Notes()
        let rules = try FormRules(fields: ["b": .init(atLeast: 1)])
        try await withUploads(notedBy: notes, rules: rules) { receiver, _ in
            let refused = try await receiver.exchange(Self.keyed)
            #expect(refused.status == 422)
        }
        #expect(notes.all.isEmpty)
    }

    @Test(arguments: [
        (DatabaseFailure() as any Error, 503, "form-not-processed", "10"),
        (HTTPError(.forbidden, message: "The album is closed.") as any Error, 403, "forbidden", nil),
        (
            UploadProblem(status: .conflict, code: "album-full", message: "The album is full.") as any Error, 409,
            "album-full", nil
        ),
    ])
    func `what the app throws is the response, and the form stays for the next try under its key`(
        error: any Error, status: Int, code: String?, retryAfter: String?
    ) async throws {
        let notes = Notes(failingWith: [error])
        try await withUploads(notedBy: notes) { receiver, store in
            let failed = try await receiver.exchange(Self.keyed)
            #expect(failed.status == status)
            #expect(failed.problem?.code == code)
            #expect(failed.headers["retry-after"] == retryAfter)
            #expect(!failed.body.contains("DatabaseFailure"))
            let ids = try await store.identifiers(limit: 10, after: nil)
            #expect(ids.count == 1)
            #expect(try await receiver.exchange(Self.keyed).status == 201)
            #expect(try await store.identifiers(limit: 10, after: nil) == ids)
        }
        #expect(notes.all.map(\.isRepetition) == [false, true])
    }

    @Test func `of a form in several requests the app is called with the last, until it accepts the form`()
        async throws
    {
        let notes = Notes(failingWith: [DatabaseFailure()])
        try await withUploads(notedBy: notes) { receiver, store in
            let sender = try CurlSender(to: receiver)
            defer { sender.removeFiles() }
            let form = Array(Form.small.utf8)
            let created = try await sender.create(form.prefix(20), isComplete: false, fields: ["User-Agent: first"])
            let location = try #require(created.head.fields["location"])
            #expect(notes.all.isEmpty)
            let failed = try await sender.append(
                form.dropFirst(20), at: 20, isComplete: true, to: location, fields: ["User-Agent: second"])
            #expect(failed.status == 503)
            #expect(failed.isComplete(in: .newest) == false)
            let last = try await sender.append(
                [], at: Int64(form.count), isComplete: true, to: location, fields: ["User-Agent: third"])
            #expect(last.status == 201)
            // The response that is kept for a client that missed it needs no call.
            #expect(try await sender.request("GET", location).body == last.body)
            #expect(notes.all.map(\.agent) == ["second", "third"])
            #expect(notes.all.map(\.isRepetition) == [false, true])
            #expect(try await store.identifiers(limit: 10, after: nil).count == 1)
        }
    }

    @Test(arguments: [
        HTTPError(.conflict, message: "The album is full.") as any Error,
        UploadProblem(status: .conflict, code: "conflict", message: "The album is full."),
    ])
    func `what the app refuses for good is the last response of a form in several requests`(
        error: any Error
    ) async throws {
        let notes = Notes(failingWith: [error])
        try await withUploads(notedBy: notes) { receiver, store in
            let sender = try CurlSender(to: receiver)
            defer { sender.removeFiles() }
            let form = Array(Form.small.utf8)
            let created = try await sender.create(form.prefix(20), isComplete: false)
            let location = try #require(created.head.fields["location"])
            let refused = try await sender.append(form.dropFirst(20), at: 20, isComplete: true, to: location)
            #expect(refused.status == 409)
            #expect(refused.problem?.detail == "The album is full.")
            #expect(refused.isComplete(in: .newest) == true)
            let again = try await sender.request("GET", location)
            #expect(again.status == 409 && again.body == refused.body)
            #expect(notes.all.count == 1)
            #expect(try await store.identifiers(limit: 10, after: nil).count == 1)
        }
    }

    @Test func `routes for several kinds of form share a store`() async throws {
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let router = Router()
            let notes = [Notes(), Notes()]
            for (notes, path) in zip(notes, ["/portraits", "/films"]) {
                var options = UploadOptions()
                options.path = path
                options.keyScope = { _ in path }
                router.addUploads(to: store, options: options) { try notes.add($0, $1, $2) }
            }
            try await withApplication(router: router) { receiver in
                for path in ["/films", "/portraits", "/films"] {
                    let stored = try await receiver.exchange(
                        Form.request(body: Form.small, fields: ["Idempotency-Key: k"], to: path))
                    #expect(stored.status == 201)
                }
            }
            #expect(notes.map(\.all.count) == [1, 2])
            #expect(notes.map { $0.all.count { $0.isRepetition } } == [0, 1])
            #expect(try await store.identifiers(limit: 10, after: nil).count == 2)
        }
    }
}
