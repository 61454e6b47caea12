package import PostcardWire

extension ConformanceCheck {
    /// The versions of the draft that ask for what the sentence says. In others the check is not applicable.
    package var versions: ClosedRange<ResumptionVersion> {
        let last: ResumptionVersion = Self.isAboutNumbers(number) ? .latestNumbered : .newest
        return (Self.first.first { $0.numbers.contains(number) }?.version ?? .interop3)...last
    }

    /// The sentences on the number in requests and interim responses, which has no place in the standard.
    private static func isAboutNumbers(_ number: Int) -> Bool { (811...822).contains(number) }

    /// The version since which the draft asks for something, of checks that do not apply to all.
    private static let first: [(numbers: ClosedRange<Int>, version: ResumptionVersion)] = [
        (106...106, .interop7), (211...219, .interop8), (231...240, .interop8), (251...257, .interop8),
        (261...268, .interop7), (301...304, .interop6), (313...316, .interop8), (321...326, .interop6),
        (327...327, .interop9), (331...339, .interop8), (340...340, .interop9), (406...406, .interop8),
        (411...414, .interop7), (441...443, .interop8), (521...525, .interop7), (531...532, .interop8),
        (561...565, .interop9), (603...608, .interop7), (621...628, .interop7),
        (679...679, .interop7), (680...680, .interop9), (692...693, .interop9), (701...706, .interop7),
        (707...708, .interop8), (709...709, .interop8), (711...714, .interop6), (804...804, .interop8),
        (807...808, .interop8), (822...822, .interop5), (831...833, .interop5), (911...914, .interop6),
        (916...918, .interop7), (921...932, .interop6), (951...951, .interop9),
    ]
}
