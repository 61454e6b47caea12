/// How far photos are that are being copied out of the library. Those in iCloud are downloaded for that.
public struct PhotoImports: Sendable, Equatable {
    public enum State: Sendable, Equatable {
        case waiting
        /// - Parameter fraction: What has arrived, from 0 to 1, or `nil` if the library does not say.
        case importing(fraction: Double?)
        case ready
        case failed(String)
        case cancelled
    }

    public struct Photo: Sendable, Equatable, Identifiable {
        /// The place of the photo in the selection, from 0.
        public let id: Int
        public internal(set) var state = State.waiting

        /// Whether the photo can still be taken out of the entry.
        public var canBeCancelled: Bool {
            switch state {
            case .waiting, .importing, .ready: true
            case .failed, .cancelled: false
            }
        }

        /// The name of the photo in its entry.
        public var title: String { DiaryText.photo.localized("\(id + 1)") }

        /// The state in a word.
        public var text: String {
            switch state {
            case .waiting: DiaryText.waiting.localized()
            case .importing: DiaryText.importing.localized()
            case .ready: DiaryText.imported.localized()
            case .failed(let message): message
            case .cancelled: DiaryText.cancelled.localized()
            }
        }

        /// What has arrived, from 0 to 1, or `nil` if that is not known.
        public var fraction: Double? {
            switch state {
            case .waiting, .failed, .cancelled: 0
            case .importing(let fraction): fraction
            case .ready: 1
            }
        }
    }

    public private(set) var photos: [Photo]

    public init(_ count: Int = 0) {
        photos = (0..<max(count, 0)).map { Photo(id: $0) }
    }

    /// Begins with the next photo, and returns it. `nil` if no photo waits.
    mutating func next() -> Int? {
        guard let index = photos.firstIndex(where: { $0.state == .waiting }) else { return nil }
        photos[index].state = .importing(fraction: nil)
        return index
    }

    /// Notes how much of a photo has arrived. A fraction that goes back, as with some libraries, is not shown.
    mutating func note(_ fraction: Double, of id: Int) {
        guard photos.indices.contains(id), case .importing(let shown) = photos[id].state, fraction > shown ?? 0
        else { return }
        photos[id].state = .importing(fraction: min(fraction, 1))
    }

    /// Notes how a photo has ended, unless it was cancelled.
    mutating func end(_ id: Int, _ state: State) {
        guard photos.indices.contains(id), case .importing = photos[id].state else { return }
        photos[id].state = state
    }

    mutating func cancel(_ id: Int) {
        guard photos.indices.contains(id), photos[id].canBeCancelled else { return }
        photos[id].state = .cancelled
    }

    /// The photos of the entry.
    var ready: [Int] { photos.filter { $0.state == .ready }.map(\.id) }

    /// Why the entry cannot be sent: the first photo that failed, or that all were cancelled. An entry is not sent
    /// without a photo that failed, because no one would notice.
    public var problem: String? {
        for photo in photos { if case .failed(let message) = photo.state { return message } }
        let areCancelled = !photos.isEmpty && photos.allSatisfy { $0.state == .cancelled }
        return areCancelled ? DiaryText.nothingToSend.localized() : nil
    }
}
