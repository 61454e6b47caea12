public import PostcardForm
public import PostcardFoundation

/// Makes the photos of a form fit a limit when the form is sent or enqueued.
///
/// ```swift
/// form.append(photos: photos, named: "petImage", fitting: PictureLimit(maximumBytes: 1_000_000))
/// form.append(photos: photos, named: "petImage", fitting: .form(maximumBytes: 5_000_000))
/// form.append(photos: photos, named: "petImage", fitting: .serverLimit)
/// ```
///
/// For a part that another source has made, such as a photo picker, set the fitting as its `preparation`:
///
/// ```swift
/// part.preparation = PictureFitting.serverLimit
/// ```
///
/// The new files are removed when the upload has ended. The filename and the type match the new picture, so
/// `IMG_0001.HEIC` is sent as `IMG_0001.jpg`.
public struct PictureFitting: FormPreparation {
    private enum Scope: String, Sendable, Hashable, Codable {
        case each, form, server
    }

    private let scope: Scope
    private let limit: PictureLimit
    /// Whether the caller has set the maximum edge. If not, a photo within the server's limits keeps its size.
    private var hasEdge = true

    /// The fitter for all forms. It prepares one photo at a time, so that many photos need no more memory than one.
    private static let fitter = PictureFitter()

    /// A fitting in which each photo fits its own limit.
    public static func each(_ limit: PictureLimit) -> PictureFitting {
        PictureFitting(scope: .each, limit: limit)
    }

    /// A fitting in which all photos share the bytes that the form may have. ``PictureBudget`` divides the bytes, so
    /// that larger photos get more.
    ///
    /// Use the same fitting for all photos of a form. Photos with another fitting count with their original sizes.
    ///
    /// - Parameters:
    ///   - maximumBytes: The maximum size of the whole body, in bytes, with its fields, headers and delimiters.
    ///   - maximumEdge: The maximum length of a photo's longer edge, in pixels. Defaults to 2,560.
    public static func form(maximumBytes: Int64, maximumEdge: Int = 2560) -> PictureFitting {
        form(PictureLimit(maximumBytes: maximumBytes, maximumEdge: maximumEdge))
    }

    /// A fitting in which all photos share the bytes that the form may have.
    ///
    /// - Parameter limit: The maximum size of the whole body, in bytes, and the other limits for each photo.
    public static func form(_ limit: PictureLimit) -> PictureFitting {
        PictureFitting(scope: .form, limit: limit)
    }

    /// A fitting in which the photos become as large as the server accepts. A photo within the server's limits keeps
    /// its size, and so does a HEIC that becomes a JPEG. Any other photo becomes a JPEG with an edge of at most 2,560
    /// pixels. While no limit is known, the original is sent.
    ///
    /// The limits are those of the client's or the queue's `rules`, and with `client.network.asksForLimits` also the
    /// limits that the server reports. If the server refuses the form with a smaller limit, the client makes the photos
    /// fit that limit and sends the form again, up to four times. If the photos cannot fit, the refusal is thrown, with
    /// the ``PictureFitError`` as its `underlyingError`. A queue stores the form as it is sent, so it does not fit the
    /// photos again.
    public static var serverLimit: PictureFitting {
        PictureFitting(scope: .server, limit: PictureLimit(maximumBytes: .max), hasEdge: false)
    }

    /// A fitting in which the photos become as large as the server accepts, but are always scaled to a maximum edge.
    ///
    /// - Parameter maximumEdge: The maximum length of a photo's longer edge, in pixels.
    public static func serverLimit(maximumEdge: Int) -> PictureFitting {
        PictureFitting(scope: .server, limit: PictureLimit(maximumBytes: .max, maximumEdge: maximumEdge))
    }

    public var followsServerLimit: Bool { scope == .server }

    public var record: Data? { try? JSONEncoder().encode(Recorded(scope: scope, limit: limit, hasEdge: hasEdge)) }

    /// Reads a fitting from its record. Returns `nil` if the record is not that of a fitting.
    init?(record: Data) {
        guard let recorded = try? JSONDecoder().decode(Recorded.self, from: record) else { return nil }
        self.init(scope: recorded.scope, limit: recorded.limit, hasEdge: recorded.hasEdge)
    }

    private init(scope: Scope, limit: PictureLimit, hasEdge: Bool = true) {
        (self.scope, self.limit, self.hasEdge) = (scope, limit, hasEdge)
    }

    /// The recorded properties of a fitting.
    private struct Recorded: Codable {
        let scope: Scope
        let limit: PictureLimit
        let hasEdge: Bool
    }

    /// Makes the photos fit. Text fields stay unchanged.
    ///
    /// - Throws: ``PictureFitError`` if a photo cannot be made to fit, with a message that begins with the photo's
    ///   filename. `CancellationError` if the task is cancelled.
    public func prepare(_ parts: [FormPart], in context: FormPreparationContext) async throws -> [FormPart] {
        try await prepare(parts, in: context, by: Self.fitter)
    }

    /// Prepares the parts. Does not run on the caller's actor, because reading files may take long.
    @concurrent
    func prepare(
        _ parts: [FormPart], in context: FormPreparationContext, by fitter: PictureFitter
    ) async throws -> [FormPart] {
        var prepared = parts
        let sizes = try parts.map { try $0.contentBytes() }
        var budget = try room(in: context).map { PictureBudget(bytes: $0, among: sizes) }
        // Text is sent unchanged, and the photos share the remaining bytes.
        for (index, part) in parts.enumerated() {
            if case .text = part.content { budget?.spend(sizes[index], on: index) }
        }
        for (index, part) in parts.enumerated() {
            try Task.checkCancellation()
            let most = [budget?.share(of: index), context.limits.maximumBytes(ofFileNamed: part.name)]
            guard let limit = limit(ofOriginal: sizes[index], within: most) else { continue }
            let picture: FittedPicture
            do {
                switch part.content {
                case .text, .stream, .picked: continue
                case .file(let url): picture = try await fitter.fit(url, to: limit, in: context.folder)
                case .bytes(let bytes): picture = try await fitter.fit(bytes, to: limit)
                }
            } catch let error as PictureFitError {
                throw error.naming(part)
            }
            budget?.spend(picture.bytes, on: index)
            guard !picture.isOriginal else { continue }
            prepared[index].content = picture.content
            prepared[index].contentType = picture.contentType
            prepared[index].filename = part.filename.map(picture.filename(for:))
        }
        return prepared
    }

    /// The number of bytes that all photos share; `nil` if each photo has its own limit, or if no limit is known.
    func room(in context: FormPreparationContext) throws(PictureFitError) -> Int64? {
        switch scope {
        case .each: return nil
        case .server: return context.maximumBytes
        case .form:
            guard let others = context.otherBytes else { throw .roomUnknown }
            return max(limit.maximumBytes - others, 0)
        }
    }

    /// The limit of one photo.
    ///
    /// - Parameters:
    ///   - bytes: The size of the original.
    ///   - known: The photo's share of the form and the server's limit for each file, each `nil` if it is not known.
    /// - Returns: The limit; `nil` to send the original.
    func limit(ofOriginal bytes: Int64, within known: [Int64?]) -> PictureLimit? {
        var limit = limit
        switch scope {
        case .each: break
        case .form: limit.maximumBytes = (known.first ?? nil) ?? limit.maximumBytes
        case .server:
            guard let most = known.compactMap(\.self).min() else { return hasEdge ? limit : nil }
            limit.maximumBytes = most
            if !hasEdge, bytes <= most { limit.maximumEdge = .max }
        }
        return limit
    }
}

extension MultipartForm {
    /// Appends photos, which are made to fit when the form is sent or enqueued.
    ///
    /// - Parameters:
    ///   - photos: The URLs of the pictures: JPEG, PNG, WebP, GIF, HEIC, AVIF or TIFF.
    ///   - name: The name of the field of every photo.
    ///   - fitting: The way in which the photos are made to fit.
    ///   - metadata: The metadata to remove from photos that are sent unchanged. Defaults to the location and data
    ///     about a person or a camera. A photo that was made to fit has no metadata.
    public mutating func append(
        photos: [URL], named name: String, fitting: PictureFitting, metadata: MetadataPolicy = .withoutLocation
    ) {
        for photo in photos {
            append(FormPart(name: name, content: .file(photo), metadata: metadata, preparation: fitting))
        }
    }

    /// Appends photos, each of which is made to fit a limit when the form is sent or enqueued.
    ///
    /// - Parameters:
    ///   - photos: The URLs of the pictures: JPEG, PNG, WebP, GIF, HEIC, AVIF or TIFF.
    ///   - name: The name of the field of every photo.
    ///   - limit: The limit that each photo must fit.
    ///   - metadata: The metadata to remove from photos that are sent unchanged. Defaults to the location and data
    ///     about a person or a camera. A photo that was made to fit has no metadata.
    public mutating func append(
        photos: [URL], named name: String, fitting limit: PictureLimit, metadata: MetadataPolicy = .withoutLocation
    ) {
        append(photos: photos, named: name, fitting: .each(limit), metadata: metadata)
    }
}

extension FormPart {
    /// The number of bytes of the part's content.
    fileprivate func contentBytes() throws(PictureFitError) -> Int64 {
        switch content {
        case .text(let text): return Int64(text.utf8.count)
        case .bytes(let bytes): return Int64(bytes.count)
        case .file(let url): return try PictureSource.file(url).reader().count
        case .picked: return 0
        case .stream: throw .unreadable("\(filename ?? name) is a stream, which cannot be read before it is sent")
        }
    }
}

extension PictureFitError {
    /// This error, with the name of the file in its message.
    fileprivate func naming(_ part: FormPart) -> PictureFitError {
        guard let filename = part.filename, !message.contains(filename) else { return self }
        return PictureFitError(code, "\(filename): \(message)", advice: advice, underlyingError: underlyingError)
    }

    fileprivate static let roomUnknown = PictureFitError(
        .cannotFit, "The room for the photos is unknown, because the form has a stream of unknown length.",
        advice: "Give the stream a length, or limit each photo.")
}
