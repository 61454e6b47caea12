import DiaryKit
import Foundation
import PhotosUI
import PostcardPictures
import SwiftUI

/// Makes what loads photos that were picked.
enum PhotoLoads {
    static func picked(_ item: PhotosPickerItem) -> PhotoLoad {
        { folder, report in
            let progress = Progress(totalUnitCount: 1)
            let reporting = Task {
                while !Task.isCancelled {
                    report(progress.fractionCompleted)
                    try await Task.sleep(for: .milliseconds(200))
                }
            }
            defer { reporting.cancel() }
            return try await item.formPart(named: "petImage", in: folder, reportingTo: progress)
        }
    }
}
