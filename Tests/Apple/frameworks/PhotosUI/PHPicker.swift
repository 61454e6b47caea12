// The struct itself is declared in PhotosUI.swift. On Apple's platforms it is not Sendable, and watchOS and tvOS do not
// have it.
extension PHPickerResult {
    public var itemProvider: NSItemProvider { fatalError() }
    public var assetIdentifier: String? { fatalError() }
}
