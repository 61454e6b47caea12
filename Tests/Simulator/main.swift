import Foundation

// Hashes differ from run to run otherwise, and with them the order of dictionaries.
if getenv("SWIFT_DETERMINISTIC_HASHING") == nil {
    setenv("SWIFT_DETERMINISTIC_HASHING", "1", 1)
    let arguments = CommandLine.arguments.map { strdup($0) } + [nil]
    execv("/proc/self/exe", arguments)
}

let usage = """
    Usage: PostcardSimulator [--seeds FIRST-LAST] [--steps COUNT] [--plant NAME] [--trace]

    Runs receivers that share a bucket, on a simulated clock, network and object store, once for each seed. Prints each
    seed that breaks a promise, and exits with 1 if any does.

    --seeds FIRST-LAST  the seeds; 1-100 by default
    --steps COUNT       how many requests the receivers make at least; 200 by default
    --plant NAME        a bug to plant; stops at the first seed that finds it, and exits with 1 if none does
    --plants            prints the bugs that can be planted
    --trace             prints all that happens
    --hash              prints a hash of all that happened for each seed
    """

func fail(_ text: String) -> Never {
    FileHandle.standardError.write(Data("\(text)\n".utf8))
    exit(2)
}

var seeds: ClosedRange<UInt64> = 1...100
var leastSteps = 200
var plant: Plant?
var purpose: Trace.Purpose = []
var words = Array(CommandLine.arguments.dropFirst())[...]
while let word = words.popFirst() {
    switch word {
    case "--seeds":
        let numbers = (words.popFirst() ?? "").split(separator: "-").compactMap { UInt64($0) }
        guard let first = numbers.first, let last = numbers.last, first <= last else { fail(usage) }
        seeds = first...last
    case "--steps":
        guard let count = words.popFirst().flatMap({ Int($0) }) else { fail(usage) }
        leastSteps = count
    case "--plant":
        let name = words.popFirst()
        guard let found = Plant.all.first(where: { $0.name == name }) else {
            fail("There is no such bug. See --plants.")
        }
        plant = found
    case "--plants":
        for plant in Plant.all { print("\(plant.name): \(plant.what)") }
        exit(0)
    case "--trace": purpose.insert(.lines)
    case "--hash": purpose.insert(.hash)
    default: fail(usage)
    }
}

let start = ContinuousClock.now
var (steps, failures, count) = (0, 0, 0)
for seed in seeds {
    let result = Simulation(seed: seed, plant: plant, leastSteps: leastSteps, trace: purpose).run()
    steps += result.steps
    count += 1
    if purpose.contains(.hash) { print("seed \(seed): \(result.steps) steps, \(String(result.hash, radix: 16))") }
    if let broken = result.broken {
        failures += 1
        print("seed \(seed): \(broken.promise.rawValue): \(broken.what)")
        if plant != nil { break }
    }
}
let seconds = start.duration(to: .now) / .seconds(1)
let rate = String(format: "%.1f", Double(count) / seconds)
FileHandle.standardError.write(
    Data("\(count) seeds, \(steps) steps, \(failures) failures, \(rate) seeds/s\n".utf8))
exit((failures == 0) == (plant == nil) ? 0 : 1)
