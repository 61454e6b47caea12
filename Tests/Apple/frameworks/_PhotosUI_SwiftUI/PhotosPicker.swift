public import SwiftUI

public struct PhotosPicker<Label: View>: View { public var body: Never { fatalError() } }
extension PhotosPicker where Label == Text {
    nonisolated public init<S: StringProtocol>(
        _ title: S, selection: Binding<[PhotosPickerItem]>, maxSelectionCount: Int? = nil,
        matching filter: PHPickerFilter? = nil,
        preferredItemEncoding: PhotosPickerItem.EncodingDisambiguationPolicy = .automatic
    ) { fatalError() }
}
extension PhotosPickerItem {
    public struct EncodingDisambiguationPolicy: Equatable, Hashable, Sendable {
        public static let automatic = EncodingDisambiguationPolicy()
        public static let current = EncodingDisambiguationPolicy()
        public static let compatible = EncodingDisambiguationPolicy()
    }
}
