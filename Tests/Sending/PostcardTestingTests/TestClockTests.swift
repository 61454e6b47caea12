import Foundation
import PostcardTesting
import Testing

@Suite(.timeLimit(.minutes(10))) @MainActor struct TestClockTests {
    /// What a screen shows of an upload.
    @MainActor final class Model {
        enum State: Equatable { case ready, sending(Double), done(String), cancelled, failed(UploadError.Code) }

        private(set) var state = State.ready
        let api: PetAPI

        init(_ api: PetAPI) {
            self.api = api
        }

        func send() async {
            do {
                let pet = try await api.add("초코", photos: [Data(count: 10_000)]) {
                    self.state = .sending($0.fraction ?? 0)
                }
                state = .done(pet.id)
            } catch let error as UploadError {
                state = .failed(error.code)
            } catch {
                state = .cancelled
            }
        }
    }

    @Test(arguments: 0..<20) func `progress follows the clock, and a cancelled upload ends`(_: Int) async throws {
        let clock = TestClock()
        let server = TestServer(.created(["id": "7"]).slowly(bytesPerSecond: 1000), clock: clock)
        let model = Model(PetAPI(server))
        let sending = Task { await model.send() }
        var fractions: [Double] = []
        for _ in 0..<4 {
            await clock.advance(by: .seconds(1))
            if case .sending(let fraction) = model.state { fractions.append((fraction * 100).rounded() / 100) }
        }
        #expect(fractions == [0.1, 0.2, 0.29, 0.39])
        sending.cancel()
        await sending.value
        #expect(model.state == .cancelled)
        #expect(server.uploads.map(\.isComplete) == [false])
    }

    @Test(arguments: 0..<20) func `an upload ends when the clock has advanced far enough`(_: Int) async throws {
        let clock = TestClock()
        let server = TestServer(.created(["id": "7"]).slowly(bytesPerSecond: 1000), clock: clock)
        let model = Model(PetAPI(server))
        let sending = Task { await model.send() }
        await clock.advance(by: .seconds(60))
        await sending.value
        #expect(model.state == .done("7"))
        #expect(try server.upload().isComplete)
    }

    @Test(arguments: 0..<20) func `a timeout ends an attempt that gets no response, and a retry waits`(_: Int)
        async throws
    {
        let clock = TestClock()
        let server = TestServer(.neverResponds, .created(["id": "7"]), clock: clock)
        var api = PetAPI(server)
        api.client.timeouts.idle = .seconds(30)
        api.client.retryPolicy = RetryPolicy(maximumAttempts: 2)
        api.client.retryPolicy.firstDelay = .seconds(20)
        api.client.retryPolicy.jitter = 0
        let model = Model(api)
        let sending = Task { await model.send() }
        await clock.advance(by: .seconds(29))
        #expect(server.uploads.count == 1)
        await clock.advance(by: .seconds(2))
        #expect(server.uploads.count == 1)
        await clock.advance(by: .seconds(18))
        #expect(server.uploads.count == 1)
        await clock.advance(by: .seconds(2))
        await sending.value
        #expect(server.uploads.count == 2)
        #expect(model.state == .done("7"))
    }

    @Test func `what the app waits for by itself follows the clock`() async throws {
        let clock = TestClock()
        let sleeping = Task { () -> TestClock.Instant in
            try await clock.sleep(for: .seconds(5))
            return clock.now
        }
        await clock.advance(by: .seconds(9))
        #expect(try await sleeping.value.sinceStart >= .seconds(5))
        #expect(clock.now.sinceStart == .seconds(9))
    }

    @Test(.timeLimit(.minutes(1))) func `the total timeout of a fresh form follows the clock`() async throws {
        let url = "https://bucket.example.com/pets/1?X-Amz-Date=20200101T000000Z&X-Amz-Expires=60"
        let expired = PresignedForm(putting: try #require(URL(string: url)))
        let clock = TestClock()
        let server = TestServer(clock: clock) { _ in .created }
        var client = UploadClient(transport: server)
        client.timeouts.total = .seconds(3600)
        let sending = Task { [client] in
            var form = MultipartForm()
            form.append(PetAPI.photo, named: "petImage", filename: "cat.jpg")
            _ = try await client.upload(form, with: expired) {
                try await clock.sleep(for: .seconds(7200))
                return expired
            }
        }
        await clock.advance(by: .seconds(3600))
        let error = await #expect(throws: UploadError.self) { try await sending.value }
        #expect(error?.code == .deadlinePassed)
        #expect(server.uploads.isEmpty)
    }

    @Test func `a clock that no one advances fails the test, and so does one that no one waits for`() async throws {
        async let idle = failures { await TestClock().advance(by: .seconds(1)) }
        async let still = failures {
            let server = TestServer(.created(["id": "7"]).slowly(bytesPerSecond: 1000), clock: TestClock())
            await Model(PetAPI(server)).send()
            #expect(server.uploads.count == 1)
        }
        #expect(
            await idle == [
                "Nothing waits for the clock. Begin an upload to its server before, or advance it less often."
            ])
        #expect(
            await still == [
                "An upload waits for the clock, which the test does not advance: await clock.advance(by: .seconds(1))."
            ])
    }
}
