import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardPictures

@Suite struct PicturePlanTests {
    private func plan(
        _ type: MediaType?, _ width: Int, _ height: Int, bytes: Int64, isAnimated: Bool = false,
        limit: PictureLimit = PictureLimit(maximumBytes: 1_000_000)
    ) -> PicturePlan {
        let size = PictureSize(width: width, height: height)
        let head = PictureHead(type: type, storedSize: size, isAnimated: isAnimated, bytes: bytes)
        return PicturePlan(for: head, size: size, limit: limit)
    }

    @Test(arguments: [MediaType.jpeg, .png, .webP, .gif])
    func `what fits and is accepted passes untouched`(type: MediaType) {
        #expect(plan(type, 2560, 1, bytes: 1_000_000) == .original)
        #expect(plan(type, 1, 1, bytes: 1) == .original)
    }

    @Test(arguments: [MediaType.heic, .avif, .tiff])
    func `a type that the receiver does not accept becomes a JPEG, even if it fits`(type: MediaType) {
        #expect(plan(type, 100, 80, bytes: 1000) == .encode(PictureFit(edge: 100, maximumBytes: 1_000_000)))
        let accepting = PictureLimit(maximumBytes: 1_000_000, acceptedTypes: [type])
        #expect(plan(type, 100, 80, bytes: 1000, limit: accepting) == .original)
    }

    @Test func `a PNG becomes a JPEG if the receiver wants JPEG only`() {
        let limit = PictureLimit(maximumBytes: 1_000_000, acceptedTypes: [.jpeg])
        #expect(
            plan(.png, 100, 80, bytes: 1000, limit: limit) == .encode(PictureFit(edge: 100, maximumBytes: 1_000_000)))
    }

    @Test func `JPEG is accepted always`() {
        let limit = PictureLimit(maximumBytes: 1_000_000, acceptedTypes: [])
        #expect(plan(.jpeg, 100, 80, bytes: 1000, limit: limit) == .original)
    }

    @Test func `one pixel or byte too many is scaled or encoded, and nothing is scaled up`() {
        #expect(plan(.jpeg, 2561, 10, bytes: 500_000) == .encode(PictureFit(edge: 2560, maximumBytes: 500_000)))
        #expect(plan(.jpeg, 90, 100, bytes: 1_000_001) == .encode(PictureFit(edge: 100, maximumBytes: 1_000_000)))
        #expect(plan(.png, 30, 20, bytes: 1_000_001) == .encode(PictureFit(edge: 30, maximumBytes: 1_000_000)))
    }

    @Test func `a JPEG never gets larger than it was, and another type may`() {
        #expect(plan(.jpeg, 4000, 3000, bytes: 300_000) == .encode(PictureFit(edge: 2560, maximumBytes: 300_000)))
        #expect(plan(.png, 4000, 3000, bytes: 300_000) == .encode(PictureFit(edge: 2560, maximumBytes: 1_000_000)))
    }

    @Test func `a JPEG of few bytes may get a little larger when it is scaled, but not than allowed`() {
        #expect(plan(.jpeg, 4000, 10, bytes: 500) == .encode(PictureFit(edge: 2560, maximumBytes: 4096)))
        let limit = PictureLimit(maximumBytes: 1000)
        #expect(plan(.jpeg, 4000, 10, bytes: 500, limit: limit) == .encode(PictureFit(edge: 2560, maximumBytes: 1000)))
    }

    @Test(arguments: [
        (8064, 2560, 2), (8064, 4032, 2), (8064, 4033, 1), (8064, 1008, 8), (8064, 1009, 4), (8064, 640, 8),
        (4032, 2560, 1), (640, 640, 1), (0, 2560, 1),
    ])
    func `a decoder shrinks a picture to what still has the pixels that are needed`(
        stored: Int, edge: Int, factor: Int
    ) {
        #expect(PicturePlan.subsampling(from: stored, to: edge) == factor)
    }

    @Test func `pixels are counted before anything is decoded`() {
        #expect(plan(.png, 10_001, 10_000, bytes: 2_000_000) == .refuse(.tooManyPixels))
        #expect(plan(.png, 2_000_000_000, 2_000_000_000, bytes: 70) == .refuse(.tooManyPixels))
        #expect(plan(.png, 65_501, 1, bytes: 70) == .refuse(.tooManyPixels))
        #expect(plan(.png, 65_500, 1, bytes: 70) == .encode(PictureFit(edge: 2560, maximumBytes: 1_000_000)))
        #expect(
            plan(.png, 10_000, 10_000, bytes: 2_000_000) == .encode(PictureFit(edge: 2560, maximumBytes: 1_000_000)))
        let brave = PictureLimit(maximumBytes: 1_000_000, maximumPixels: 200_000_000)
        #expect(
            plan(.png, 14_000, 14_000, bytes: 2_000_000, limit: brave)
                == .encode(PictureFit(edge: 2560, maximumBytes: 1_000_000)))
    }

    @Test func `an animated picture passes if it fits, and is refused otherwise`() {
        #expect(plan(.gif, 400, 300, bytes: 900_000, isAnimated: true) == .original)
        #expect(plan(.gif, 400, 300, bytes: 1_100_000, isAnimated: true) == .refuse(.animated))
        #expect(plan(.webP, 4000, 300, bytes: 100, isAnimated: true) == .refuse(.animated))
    }

    @Test func `a picture without pixels is refused`() {
        let limit = PictureLimit(maximumBytes: 10)
        #expect(plan(.jpeg, 0, 100, bytes: 1000, limit: limit) == .refuse(.damaged))
    }

    @Test func `a limit of no pixels asks for one`() {
        let limit = PictureLimit(maximumBytes: 1000, maximumEdge: 0)
        #expect(plan(.png, 30, 20, bytes: 100, limit: limit) == .encode(PictureFit(edge: 1, maximumBytes: 1000)))
    }

    @Test(arguments: [
        (4032, 3024, 2560, 2560, 1920), (3024, 4032, 2560, 1920, 2560), (100, 100, 640, 100, 100),
        (5000, 1, 2560, 2560, 1), (3, 4000, 2560, 2, 2560), (2561, 2560, 2560, 2560, 2559), (1, 1, 1, 1, 1),
    ])
    func `a scaled picture keeps its shape and at least one pixel`(w: Int, h: Int, edge: Int, toW: Int, toH: Int) {
        #expect(PictureSize(width: w, height: h).scaled(toEdge: edge) == PictureSize(width: toW, height: toH))
    }

    @Test(arguments: [("RGB ", false, true), ("GRAY", true, true), ("RGB ", true, false), ("CMYK", false, false)])
    func `a color profile is kept if it is for these colors`(space: String, isGrey: Bool, isKept: Bool) {
        var profile = [UInt8](repeating: 0, count: 500)
        profile.replaceSubrange(16..<20, with: space.utf8)
        let keeps = PicturePlan.keepsProfile(profile, count: 500, isGrey: isGrey, maximumBytes: 2000)
        #expect(keeps == isKept)
        #expect(!PicturePlan.keepsProfile(profile, count: 500, isGrey: isGrey, maximumBytes: 1999))
        #expect(!PicturePlan.keepsProfile(profile.prefix(30), count: 30, isGrey: isGrey, maximumBytes: 2000))
    }

    /// Two rows of three pixels, and what each orientation makes of them.
    @Test(arguments: [
        (1, "abc def"), (2, "cba fed"), (3, "fed cba"), (4, "def abc"), (5, "ad be cf"), (6, "da eb fc"),
        (7, "fc eb da"), (8, "cf be ad"),
    ])
    func `every orientation turns pixels as EXIF says`(number: Int, rows: String) throws {
        let orientation = try #require(PictureOrientation(rawValue: number))
        let stored = PictureSize(width: 3, height: 2)
        let steps = orientation.steps(in: stored)
        var turned = [Character](repeating: "?", count: 6)
        for (index, pixel) in "abcdef".enumerated() {
            turned[steps.first + index % 3 * steps.pixel + index / 3 * steps.row] = pixel
        }
        #expect(String(turned) == rows.filter { $0 != " " })
        #expect(orientation.size(of: stored).height == rows.split(separator: " ").count)
    }
}

@Suite struct PictureBudgetTests {
    private func shares(_ bytes: Int64, _ sizes: [Int64]) -> [Int64] {
        let budget = PictureBudget(bytes: bytes, among: sizes)
        return sizes.indices.map(budget.share(of:))
    }

    private static let divisions: [(bytes: Int64, sizes: [Int64], shares: [Int64])] = [
        // Enough for all: what is over is shared.
        (3000, [1000, 500], [2000, 1000]),
        // The same for the same.
        (2_000_000, [5_000_000, 5_000_000], [1_000_000, 1_000_000]),
        // A small picture keeps its bytes, and the others share the rest.
        (2_020_000, [5_000_000, 20_000, 5_000_000], [1_000_000, 20_000, 1_000_000]),
        // Four times the bytes, twice the share.
        (3_000_000, [2_000_000, 8_000_000], [1_000_000, 2_000_000]),
        (0, [5, 5], [0, 0]), (-7, [5], [0]), (10, [], []), (1000, [0, 0], [500, 500]),
        // No limit.
        (.max, [1000], [.max]),
    ]

    @Test(arguments: divisions)
    func `larger pictures get more, and small ones keep what they have`(
        bytes: Int64, sizes: [Int64], expected: [Int64]
    ) {
        #expect(shares(bytes, sizes) == expected)
    }

    @Test func `shares never exceed the budget, whatever was spent before`() {
        var random = SeededGenerator(seed: 3)
        for _ in 0..<2000 {
            let sizes = (0..<Int.random(in: 1...12, using: &random)).map { _ in
                Int64.random(in: 0...20_000_000, using: &random)
            }
            let bytes = Int64.random(in: 0...30_000_000, using: &random)
            #expect(shares(bytes, sizes).reduce(0, +) <= bytes)
            var budget = PictureBudget(bytes: bytes, among: sizes)
            var total: Int64 = 0
            for index in sizes.indices.shuffled(using: &random) {
                let share = budget.share(of: index)
                #expect(share >= 0)
                let used = Int64.random(in: 0...share, using: &random)
                budget.spend(used, on: index)
                #expect(budget.share(of: index) == used)
                total += used
            }
            #expect(total <= bytes)
        }
    }

    @Test func `what a picture leaves goes to the next`() {
        var budget = PictureBudget(bytes: 2_000_000, among: [5_000_000, 5_000_000])
        budget.spend(400_000, on: 0)
        #expect(budget.share(of: 1) == 1_600_000)
        budget.spend(3_000_000, on: 1)
        #expect(budget.share(of: 5) == 0)
    }
}
