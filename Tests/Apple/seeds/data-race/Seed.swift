// ios: risks causing data races
final class SeededCounter {
    var count = 0
}

func countTwice() async -> Int {
    let counter = SeededCounter()
    let task = Task { counter.count += 1 }
    counter.count += 1
    await task.value
    return counter.count
}
