import Benchmark
import Bodies

/// The same cases as in `compare`, for the benchmark package's tables, baselines and thresholds.
let benchmarks: @Sendable () -> Void = {
    Benchmark.defaultConfiguration = .init(
        metrics: [.wallClock, .throughput, .peakMemoryResident], warmupIterations: 1, maxDuration: .seconds(3))
    let chunkLength = 64 << 10
    for bodyCase in BodyCase.all {
        Benchmark("\(bodyCase.title): memmem") { _, body in
            blackHole(body.scan(chunkLength: chunkLength))
        } setup: {
            bodyCase.make()
        }
        Benchmark("\(bodyCase.title): Postcard") { _, body in
            blackHole(try body.parse(chunkLength: chunkLength))
        } setup: {
            bodyCase.make()
        }
    }
}
