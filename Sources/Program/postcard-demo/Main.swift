import PostcardDemo

/// `postcard demo` without the rest of the program, which takes longer to compile.
@main
struct Main {
    static func main() async throws {
        try await Demonstration(directory: "./received") { print($0) }.run()
    }
}
