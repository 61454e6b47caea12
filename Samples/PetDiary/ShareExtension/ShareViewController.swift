import DiaryKit
import Foundation
import PostcardPictures
import SwiftUI
import UIKit

/// What the system shows in the share sheet.
final class ShareViewController: UIViewController {
    override func viewDidLoad() {
        super.viewDidLoad()
        let items = (extensionContext?.inputItems ?? []).compactMap { $0 as? NSExtensionItem }
        let providers = items.flatMap { $0.attachments ?? [] }
        let screen = ShareScreen(photos: providers.map(Self.load)) { [extensionContext] in
            extensionContext?.completeRequest(returningItems: nil, completionHandler: nil)
        } cancel: { [extensionContext] in
            extensionContext?.cancelRequest(withError: CocoaError(.userCancelled))
        }
        show(UIHostingController(rootView: screen))
    }

    private func show(_ controller: UIViewController) {
        addChild(controller)
        if let all = view, let shown = controller.view {
            shown.frame = all.bounds
            shown.autoresizingMask = [.flexibleWidth, .flexibleHeight]
            all.addSubview(shown)
        }
        controller.didMove(toParent: self)
    }

    private static func load(_ provider: NSItemProvider) -> PhotoLoad {
        { folder, report in
            let progress = Progress(totalUnitCount: 1)
            let reporting = Task {
                while !Task.isCancelled {
                    report(progress.fractionCompleted)
                    try await Task.sleep(for: .milliseconds(200))
                }
            }
            defer { reporting.cancel() }
            return try await provider.formPart(named: "petImage", in: folder, reportingTo: progress)
        }
    }
}
