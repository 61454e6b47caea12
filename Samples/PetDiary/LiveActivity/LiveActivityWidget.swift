import ActivityKit
import DiaryKit
import SwiftUI
import WidgetKit

/// What the Lock Screen and the Dynamic Island show while entries are being sent.
@main
struct LiveActivityWidgets: WidgetBundle {
    var body: some Widget { LiveActivityWidget() }
}

struct LiveActivityWidget: Widget {
    var body: some WidgetConfiguration {
        ActivityConfiguration(for: DiaryActivity.self) { context in
            VStack {
                Text(DiaryText.title.localized())
                ProgressView(context.state.text, value: context.state.fraction)
            }
        } dynamicIsland: { context in
            DynamicIsland {
                DynamicIslandExpandedRegion(.bottom) {
                    ProgressView(context.state.text, value: context.state.fraction)
                }
            } compactLeading: {
                Text("\(context.state.sent)/\(context.state.count)")
            } compactTrailing: {
                Text("\(context.state.percent) %")
            } minimal: {
                Text("\(context.state.percent) %")
            }
        }
    }
}
