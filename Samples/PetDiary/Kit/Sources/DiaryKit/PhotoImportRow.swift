#if canImport(SwiftUI)
public import SwiftUI

/// How far a photo is, and a button that takes it out of the entry.
public struct PhotoImportRow: View {
    private let photo: PhotoImports.Photo
    private let cancel: () -> Void

    public init(photo: PhotoImports.Photo, cancel: @escaping () -> Void) {
        self.photo = photo
        self.cancel = cancel
    }

    public var body: some View {
        HStack {
            ProgressView("\(photo.title): \(photo.text)", value: photo.fraction)
            if photo.canBeCancelled {
                Button(DiaryText.cancel.localized()) { cancel() }.buttonStyle(.borderless)
            }
        }
    }
}
#endif
