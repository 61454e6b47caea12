import PostcardDemo

/// Runs `postcard demo` as a separate program, which compiles faster than `postcard`.
@main
struct Main {
    static func main() async throws {
        try await Demonstration(directory: "./received") { print($0) }.run()
    }
}
