public import Foundation
public import UniformTypeIdentifiers

@preconcurrency public protocol Transferable: Sendable {
    associatedtype Representation: TransferRepresentation
    @TransferRepresentationBuilder<Self> static var transferRepresentation: Self.Representation { get }
}
public protocol TransferRepresentation<Item>: Sendable {
    associatedtype Item: Transferable
    associatedtype Body: TransferRepresentation
    var body: Self.Body { get }
}
extension Never: Transferable {
    public static var transferRepresentation: Never { fatalError() }
}
extension Never: TransferRepresentation {
    public typealias Item = Never
    public var body: Never { fatalError() }
}
@resultBuilder public struct TransferRepresentationBuilder<Item: Transferable>: Sendable {
    public static func buildExpression<Content: TransferRepresentation>(_ content: Content) -> Content
    where Item == Content.Item { fatalError() }
    public static func buildBlock<Content: TransferRepresentation>(_ content: Content) -> Content
    where Item == Content.Item { fatalError() }
    public static func buildBlock<C1: TransferRepresentation, C2: TransferRepresentation>(
        _ content1: C1, _ content2: C2
    ) -> TupleTransferRepresentation<Item, (C1, C2)> where Item == C1.Item, C1.Item == C2.Item { fatalError() }
}
public struct TupleTransferRepresentation<Item: Transferable, Value>: TransferRepresentation, @unchecked Sendable {
    public var body: Never { fatalError() }
}
public struct ReceivedTransferredFile: Sendable {
    public let file: URL
    public let isOriginalFile: Bool
}
public struct SentTransferredFile: Sendable {
    public init(_ file: URL, allowAccessingOriginalFile: Bool = false) { fatalError() }
}
public struct FileRepresentation<Item: Transferable>: TransferRepresentation {
    public init(
        importedContentType: UTType, shouldAttemptToOpenInPlace: Bool = false,
        importing: @escaping @Sendable (ReceivedTransferredFile) async throws -> Item
    ) { fatalError() }
    public init(
        exportedContentType: UTType, shouldAllowToOpenInPlace: Bool = false,
        exporting: @escaping @Sendable (Item) async throws -> SentTransferredFile
    ) { fatalError() }
    public var body: Never { fatalError() }
}
