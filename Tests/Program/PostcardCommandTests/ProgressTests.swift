import Testing

@testable import postcard

@Suite("What is drawn of an upload")
struct ProgressTests {
    private let lines = ProgressLines(
        files: [
            .init(label: "cat.jpg", sent: 2_000_000, total: 2_000_000),
            .init(label: "제주 바다.jpg", sent: 999_999, total: 2_000_000),
            .init(label: "-", sent: 5, total: nil),
        ],
        whole: .init(label: "total", sent: 3_000_004, total: 6_000_000), speed: 1_000_000)

    @Test
    func `a bar for each file and one for the whole, with speed and time left`() {
        #expect(
            lines.drawn(columns: 100, rows: 24) == [
                "cat.jpg        ████████████████████████████████████████  100 %    2.0 MB of 2.0 MB",
                "제주 바다.jpg  ███████████████████░░░░░░░░░░░░░░░░░░░░░   49 %    1.0 MB of 2.0 MB",
                "-              ░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░░                    5 bytes",
                "total          ██████████████████░░░░░░░░░░░░░░░░░░   50 %    3.0 MB of 6.0 MB  1.0 MB/s  0:03 left",
            ])
    }

    @Test
    func `the last line says what the upload waits for`() {
        var lines = lines
        lines.phase = "waiting for the response"
        let last = lines.drawn(columns: 100, rows: 24).last
        #expect(last?.hasSuffix("50 %    3.0 MB of 6.0 MB  waiting for the response") == true, "\(last ?? "")")
    }

    @Test(arguments: [14, 20, 40, 43, 60])
    func `the percentage stays on narrow terminals`(columns: Int) {
        var lines = lines
        lines.files = [.init(label: "a-very-long-name-of-a-picture.jpg", sent: 1, total: 2)]
        lines.phase = "waiting for the response"
        let drawn = lines.drawn(columns: columns, rows: 24)
        #expect(drawn.allSatisfy { $0.contains("50 %") && DisplayWidth.of($0) < columns }, "\(drawn)")
        #expect(columns < 40 || drawn.last?.contains("waiting for the response") == true, "\(drawn)")
    }

    @Test(arguments: [20, 30, 43, 60, 80, 200])
    func `no line is wider than the terminal, whatever the names`(columns: Int) {
        var lines = lines
        lines.files.append(.init(label: String(repeating: "긴이름", count: 50) + ".jpg", sent: 0, total: 1))
        for line in lines.drawn(columns: columns, rows: 24) { #expect(DisplayWidth.of(line) < columns) }
    }

    @Test
    func `where there is no room for all files, those under way are shown`() {
        var lines = lines
        lines.files = (0..<50).map { .init(label: "\($0)", sent: $0 < 30 ? 1 : 0, total: 1) }
        let drawn = lines.drawn(columns: 80, rows: 10)
        #expect(drawn.count == 9)
        #expect(drawn.contains { $0.hasPrefix("30 ") })
        #expect(drawn.last?.hasPrefix("total") == true)
    }

    @Test(
        arguments: [
            (0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (999_949, "999.9 kB"), (999_950, "1.0 MB"),
            (4_294_967_296, "4.3 GB"), (5_000_000_000_000, "5.0 TB"),
        ] as [(Int64, String)])
    func `sizes and durations are short`(bytes: Int64, text: String) {
        #expect(ProgressLines.size(bytes) == text)
    }

    @Test(arguments: [
        (0, "0:00"), (0.2, "0:01"), (61, "1:01"), (3600, "1:00:00"), (86399.5, "24:00:00"), (.infinity, "--:--"),
    ])
    func `durations have hours where they must`(seconds: Double, text: String) {
        #expect(ProgressLines.duration(seconds) == text)
    }

    @Test(arguments: [
        ("cat.jpg", 10, "cat.jpg   "), ("a-very-long-name.jpg", 10, "a-ver….jpg"), ("제주바다사진첩.jpg", 10, "제주….jpg "),
    ])
    func `a long name keeps its extension`(name: String, columns: Int, fitted: String) {
        #expect(DisplayWidth.fit(name, to: columns) == fitted)
    }
}
