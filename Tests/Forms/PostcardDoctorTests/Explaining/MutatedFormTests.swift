import Foundation
import PostcardDoctor
import PostcardForm
import Testing

@Suite("A form with mistakes from a seed")
struct MutatedFormTests {
    /// `POSTCARD_MUTATED_FORMS=2000` takes more of them, and `POSTCARD_MUTATION_SEED` other ones.
    private static func number(_ name: String, or usual: Int) -> Int {
        ProcessInfo.processInfo.environment[name].flatMap { Int($0) } ?? usual
    }

    private static let seeds: Range<Int> = {
        let start = number("POSTCARD_MUTATION_SEED", or: 1)
        return start..<(start + number("POSTCARD_MUTATED_FORMS", or: 300))
    }()

    /// What fixing a form results in.
    private enum Outcome: Equatable {
        /// Nothing was wrong, or nothing is fixed for certain.
        case unchanged
        /// Something is left to the sender.
        case left
        case fixed([MutatedForm.Part])
    }

    private static func outcome(of form: MutatedForm) -> Outcome {
        let bytes = form.request
        let explanation = BrokenRequestTests.explanation(of: bytes)
        guard !explanation.fixable.isEmpty else { return .unchanged }
        let fixed = RequestFixerTests.fixed(bytes)
        let second = BrokenRequestTests.explanation(of: fixed)
        let result = explanation.outcome(reading: second)
        guard explanation.keepsContents(in: second), !result.fixed.isEmpty else { return .unchanged }
        guard result.left.allSatisfy({ $0.severity != .error }) else { return .left }
        #expect(second.isValid, "\(form) became \(second)")
        let end = BrokenRequestTests.headEnd(of: fixed)
        return .fixed(
            second.parts.map { part in
                let start = end + Int(part.offset)
                return .init(
                    name: part.name, filename: part.filename, content: Array(fixed[start..<(start + Int(part.size))]))
            })
    }

    @Test(arguments: [1, 2, 3])
    func `a certain fix never results in other parts`(mistakes: Int) {
        var certain = 0
        for seed in Self.seeds {
            let form = MutatedForm(seed: UInt64(seed), mistakes: mistakes)
            guard case .fixed(let parts) = Self.outcome(of: form), !form.isAmbiguous else { continue }
            certain += 1
            #expect(parts == form.parts, "seed \(seed): \(form)")
        }
        // Most of what is fixed is fixed for certain.
        #expect(certain * 5 > Self.seeds.count, "\(certain)")
    }

    /// The mistakes that are always fixed when each is alone, whatever the form.
    private static let fixable: Set<MutatedForm.Mistake> = [
        .blanksBehind, .lineFeedBehind, .singleQuotes, .blanksAroundEquals, .attachment, .blankBeforeColon,
        .lineFeedInHeader, .badType, .folded, .lineFeedForBlankLine, .lineFeedAfter, .noLineBreakAfter, .openClose,
        .oneDashClose, .closeWithoutBreak, .epilogue, .closedTwice, .closeWithoutDashes, .closeOfThree,
        .leadingLineBreak, .preamble, .wrongLength, .blankInType, .dashesInType, .commaInType, .noClose,
    ]

    @Test
    func `a mistake that is alone is fixed with the same parts`() {
        for seed in Self.seeds {
            let form = MutatedForm(seed: UInt64(seed), mistakes: 1)
            guard let (mistake, part) = form.mistakes.first, Self.fixable.contains(mistake), !form.isAmbiguous else {
                continue
            }
            // An empty content that no line break follows is well-formed, and others of the form may hide parts.
            if mistake == .noLineBreakAfter, form.parts[part].content.isEmpty { continue }
            // The line break that ends the body may be the content or belong to the missing delimiter.
            if mistake == .noClose, form.parts.last?.content.isEmpty == true { continue }
            let outcome = Self.outcome(of: form)
            // Without a content there is nothing to fix, and a media type that is only a name is fixed if the bytes say
            // which was meant.
            let isFine = mistake == .badType || BrokenRequestTests.explanation(of: form.request).isWellFormed
            if isFine, outcome == .unchanged { continue }
            #expect(outcome == .fixed(form.parts), "seed \(seed): \(form)")
        }
    }

    @Test
    func `the first delimiter is fixed if only its dashes or blanks are wrong`() {
        for seed in Self.seeds {
            let form = MutatedForm(seed: UInt64(seed), mistakes: 1)
            let first: Set<MutatedForm.Mistake> = [.noDashes, .oneDash, .threeDashes, .blankBefore]
            guard let (mistake, part) = form.mistakes.first, first.contains(mistake) else { continue }
            let outcome = Self.outcome(of: form)
            #expect(outcome == (part == 0 ? .fixed(form.parts) : .unchanged), "seed \(seed): \(form)")
            guard part > 0 else { continue }
            // Others may be content, which is said.
            let codes = Set(BrokenRequestTests.explanation(of: form.request).findings.map(\.code))
            #expect(
                !codes.isDisjoint(with: [.partInContent, .missingLineBreakBeforeDelimiter]), "seed \(seed): \(form)")
        }
    }
}
