import Foundation
import PostcardQueue

/// An app that sends pets, for the tests in Tests/Testing. Its mistakes are those that they must find.
public struct PetAPI: Sendable {
    public struct Pet: Codable, Sendable, Equatable {
        public let id: String

        public init(id: String) {
            self.id = id
        }
    }

    public enum Mistake: String, CaseIterable, Sendable {
        case misspelledName, wrongText, nameAsFile, photoAsText, noPhoto, pngForJPEG, wrongBytes, originalSize,
            location,
            debugField, sendsTwice, noSession
    }

    public static let url = "https://api.example.com/pets"

    public var client: UploadClient
    public var mistake: Mistake?

    public nonisolated init(_ client: UploadClient, mistake: Mistake? = nil) {
        self.client = client
        self.mistake = mistake
    }

    /// The form of a pet: its name, and a JPEG for each photo, without the place where it was taken.
    public nonisolated func form(_ name: String, photos: [URL]) throws -> MultipartForm {
        var form = MultipartForm()
        switch mistake {
        case .misspelledName: form.append(name, named: "nmae")
        case .wrongText: form.append(" \(name)", named: "name")
        case .nameAsFile: form.append(Data(name.utf8), named: "name", filename: "name.txt")
        default: form.append(name, named: "name")
        }
        for photo in photos {
            switch mistake {
            case .noPhoto: break
            case .photoAsText: form.append(photo.lastPathComponent, named: "petImage")
            case .pngForJPEG: form.append(fileAt: photo, named: "petImage", contentType: .png)
            case .wrongBytes:
                form.append(
                    try Data(contentsOf: photo).base64EncodedString(), named: "petImage", filename: "cat.jpg", as: .jpeg
                )
            case .originalSize:
                form.append(
                    try Data(contentsOf: photo) + Data(count: 30_000), named: "petImage", filename: "cat.jpg",
                    metadata: .asIs)
            case .location: form.append(fileAt: photo, named: "petImage", metadata: .asIs)
            default: form.append(fileAt: photo, named: "petImage")
            }
        }
        if mistake == .debugField { form.append("1", named: "debug") }
        return form
    }

    /// Sends a pet, and reports how much of it was sent.
    public nonisolated(nonsending) func add(
        _ name: String, photos: [URL], progress: ((Double) -> Void)? = nil
    ) async throws -> Pet {
        guard let url = URL(string: Self.url) else { throw CocoaError(.fileNoSuchFile) }
        let form = try form(name, photos: photos)
        if mistake == .sendsTwice { try await client.upload(form, to: url) }
        return try await client.upload(form, to: url) { progress?($0.fraction ?? 0) }.decode(Pet.self)
    }
}

extension MultipartForm {
    fileprivate nonisolated mutating func append(
        _ text: String, named name: String, filename: String, as type: MediaType
    ) {
        append(Data(text.utf8), named: name, filename: filename, contentType: type, metadata: .asIs)
    }
}

/// What a screen shows of a pet that is sent.
@MainActor public final class PetModel {
    public enum State: Equatable {
        case ready, sending, done(PetAPI.Pet), cancelled, failed(String)
    }

    public private(set) var fraction = 0.0
    public private(set) var state = State.ready
    private let api: PetAPI

    public init(_ api: PetAPI) {
        self.api = api
    }

    public func send(_ name: String, photos: [URL]) async {
        state = .sending
        do {
            state = .done(try await api.add(name, photos: photos) { self.fraction = $0 })
        } catch is CancellationError {
            state = .cancelled
        } catch {
            state = .failed("\(error)")
        }
    }
}

/// The pets that the app keeps, and the queue that sends them while it is closed.
public actor PetStore {
    public static let session = "com.example.pets"

    public nonisolated let queue: UploadQueue
    private let api: PetAPI
    private let pets: Pets

    /// The identifiers of the pets that the server has.
    actor Pets {
        var uploaded: [String] = []

        func note(_ upload: QueuedUpload) throws {
            if case .done = upload.state, let id = try upload.tag(as: String.self) { uploaded.append(id) }
        }
    }

    public init(folder: URL, mistake: PetAPI.Mistake? = nil) {
        let pets = Pets()
        self.pets = pets
        api = PetAPI(UploadClient(), mistake: mistake)
        queue = UploadQueue(
            directory: folder, session: mistake == .noSession ? nil : BackgroundSession(identifier: Self.session)
        ) { try await pets.note($0) }
    }

    public func add(_ id: String, _ name: String, photos: [URL]) async throws -> QueuedUpload.ID {
        guard let url = URL(string: PetAPI.url) else { throw CocoaError(.fileNoSuchFile) }
        return try await queue.enqueue(try api.form(name, photos: photos), to: url, tag: id)
    }

    public func isUploaded(_ id: String) async -> Bool { await pets.uploaded.contains(id) }
}
