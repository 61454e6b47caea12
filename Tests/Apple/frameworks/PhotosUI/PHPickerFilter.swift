public struct PHPickerFilter: Equatable, Hashable, Sendable {
    public static let images = PHPickerFilter()
    public static let videos = PHPickerFilter()
}
