/// Short options with their value joined to them, as curl has them: `-Fname=value`, `-XPUT`.
///
/// The argument parser takes what stands before the equals sign for the option's name, so they are parted before it
/// sees them.
enum JoinedOptions {
    private static let options: Set<Substring> = ["-F", "-X", "-H"]

    static func parted(_ arguments: some Sequence<String>) -> [String] {
        var result: [String] = []
        var isValue = false
        for argument in arguments {
            let start = argument.prefix(2)
            if isValue || !options.contains(start) {
                result.append(argument)
                isValue = false
            } else if argument == start {
                result.append(argument)
                isValue = true
            } else {
                result += [String(start), String(argument.dropFirst(2))]
            }
        }
        return result
    }
}
