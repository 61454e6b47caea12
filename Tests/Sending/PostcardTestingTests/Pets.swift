import Foundation
import HTTPTypes
import PostcardTesting

/// The uploads of an app, with the mistakes that a test plants.
struct PetAPI {
    struct Pet: Codable, Sendable {
        let id: String
    }

    var client: UploadClient
    var nameField = "name"
    var metadata = MetadataPolicy.picturesWithoutLocation

    static let url = URL(filePath: "/").isFileURL ? URL(string: "https://api.example.com/pets?kind=cat") : nil

    init(_ server: TestServer) {
        client = UploadClient(transport: server)
    }

    @discardableResult
    func add(
        _ name: String, photos: [Data], progress: ((UploadProgress) -> Void)? = nil
    ) async throws -> Pet {
        guard let url = Self.url else { throw CancellationError() }
        var form = MultipartForm()
        form.append(name, named: nameField)
        for (index, photo) in photos.enumerated() {
            form.append(photo, named: "petImage", filename: "\(index).jpg", contentType: .jpeg, metadata: metadata)
        }
        return try await client.upload(form, to: url, progress: progress).decode(Pet.self)
    }

    /// The smallest JPEGs, which differ in a byte.
    static let photo = Data([0xFF, 0xD8, 0xFF, 0xDA, 0x00, 0x02, 0x00, 0xFF, 0xD9])
    static let otherPhoto = Data([0xFF, 0xD8, 0xFF, 0xDA, 0x00, 0x02, 0x01, 0xFF, 0xD9])
}
