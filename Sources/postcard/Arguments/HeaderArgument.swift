import HTTPTypes

/// One `-H` of the command line: `Name: value`.
struct HeaderArgument {
    let field: HTTPField

    /// Why an argument cannot be understood.
    struct Fault: Error, CustomStringConvertible {
        let description: String
    }

    init(_ argument: String) throws {
        guard let colon = argument.firstIndex(of: ":"), let name = HTTPField.Name(String(argument[..<colon])) else {
            throw Fault(description: "'\(argument)' is not written as Name: value.")
        }
        let value = argument[argument.index(after: colon)...].drop { $0 == " " || $0 == "\t" }
        guard HTTPField.isValidValue(String(value)) else {
            throw Fault(description: "The value of the header field \(name) holds a control character.")
        }
        field = HTTPField(name: name, value: String(value))
    }
}
