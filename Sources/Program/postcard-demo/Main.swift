import PostcardDemo

/// Runs `postcard demo` as a separate program, without the rest of `postcard`, which takes longer to compile.
@main
struct Main {
    static func main() async throws {
        try await Demonstration(directory: "./received") { print($0) }.run()
    }
}
