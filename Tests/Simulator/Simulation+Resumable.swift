import Foundation
import NIOCore
import PostcardForm
import PostcardS3
import PostcardServer

/// Clients that send forms in several requests, also one form through several receivers at once.
extension Simulation {
    func resume() async {
        if let known = resumables.randomElement(using: &scheduler.random), scheduler.random.isTrue(0.5) {
            await proceed(with: known, tries: scheduler.random.number(1...4))
            return
        }
        guard let resumable = await create() else { return }
        if scheduler.random.isTrue(0.9) {
            await proceed(with: resumable, tries: scheduler.random.number(1...8))
        }
    }

    func create() async -> Promises.Resumable? {
        let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz")
        let text = String((0..<32).map { _ in alphabet[scheduler.random.number(0...31)] })
        guard let id = ResumptionID(text) else { return nil }
        let key = scheduler.random.isTrue(0.3) ? anyKey() : UploadKey(text, scope: "simulation")
        let form = newForm(key)
        let bytes = form.bytes
        let lifetime = scheduler.random.time(3600...172_800)
        let resumable = Promises.Resumable(id, form, expires: scheduler.now + lifetime)
        let part = self.part(of: bytes, at: 0)
        let unfinished = UnfinishedForm(contentType: "simulation", key: key, length: part.length)
        let connection = ClientConnection()
        let pace = self.pace(connection)
        let receiver = anyReceiver()
        let result = await call(receiver, timeout: timeout(pace), on: connection) { store, process in
            let expires = Date(
                timeIntervalSince1970: SimulatedStore.start + process.scheduler.now + receiver.skew + lifetime)
            let upload = try await store.createUnfinishedUpload(id, of: unfinished, expires: expires)
            // The interim response tells the client the address. Before that, nothing is promised.
            self.resumables.append(resumable)
            receiver.begin(id, on: connection)
            return try await upload.lock.withLock {
                try await SimulatedReceiver.append(part, to: upload, pace, in: store, on: process)
            }
        }
        return finish(result, resumable, least: 0) ? resumable : nil
    }

    func part(of bytes: [UInt8], at offset: Int64) -> SimulatedReceiver.Part {
        let rest = bytes.count - Int(offset)
        let count = isEnding || scheduler.random.isTrue(0.4) ? rest : scheduler.random.number(0...rest)
        var part = SimulatedReceiver.Part(
            offset: offset, bytes: Array(bytes[Int(offset)..<Int(offset) + count]), isLast: count == rest)
        if scheduler.random.isTrue(0.4) { part.length = Int64(bytes.count) }
        if scheduler.random.isTrue(0.2) {
            part.digest = (true, isEnding || scheduler.random.isTrue(0.7))
            if !part.digest.isRight { part.bytes = part.bytes.map { $0 &+ 1 } }
        }
        return part
    }

    /// - Returns: Whether there was an answer by which the client can go on.
    func finish(
        _ result: Swift.Result<SimulatedReceiver.Response, any Error>, _ resumable: Promises.Resumable, least: Int64
    ) -> Bool {
        say("resumable \(resumable.id.text.prefix(4)) of \(resumable.form.number): \(Self.text(result))")
        guard case .success(let response) = result else { return false }
        switch response {
        case .created(let record):
            promises.created(record, resumable.form)
            resumable.record = record.id
        case .offset(let offset), .mismatch(let offset): promises.shows(offset, of: resumable, least: least)
        case .overtaken(let start, let call): promises.overtaken(resumable, from: start, call: call)
        case .finished(let record):
            if let record { resumable.record = record }
        case .notFound:
            promises.isGone(resumable)
            return false
        case .keyReused: break
        }
        return true
    }

    func head(_ resumable: Promises.Resumable) async -> SimulatedReceiver.Response? {
        let (receiver, least, id) = (anyReceiver(), resumable.offset, resumable.id)
        let result = await call(receiver, timeout: 200) { store, process -> SimulatedReceiver.Response in
            guard let upload = try await store.unfinishedUpload(id) else { return .notFound }
            receiver.begin(id, on: ClientConnection())
            return try await upload.lock.withLock {
                switch try await upload.durableProgress() {
                case .gone: .notFound
                case .unfinished(let offset): .offset(offset)
                case .finished(_, let record): .finished(record)
                }
            }
        }
        guard finish(result, resumable, least: least), case .success(let response) = result else { return nil }
        return response
    }

    /// - Returns: `nil` if there was no response by which the client can go on.
    private func append(to resumable: Promises.Resumable, at offset: Int64) async -> SimulatedReceiver.Response? {
        let part = self.part(of: resumable.form.bytes, at: offset)
        let (id, least) = (resumable.id, resumable.offset)
        let connection = ClientConnection()
        let (pace, receiver) = (self.pace(connection), anyReceiver())
        let result = await call(receiver, timeout: timeout(pace), on: connection) { store, process in
            receiver.begin(id, on: connection)
            return try await SimulatedReceiver.append(part, to: id, pace, in: store, on: process)
        }
        guard finish(result, resumable, least: least), case .success(let response) = result else { return nil }
        return response
    }

    @discardableResult
    func proceed(with resumable: Promises.Resumable, tries: Int) async -> Bool {
        var offset = resumable.offset
        for number in 0..<tries {
            if number > 0 || scheduler.random.isTrue(0.5) {
                switch await head(resumable) {
                case .offset(let known): offset = known
                case .finished: return true
                default: continue
                }
            }
            guard offset <= resumable.form.bytes.count else { return false }
            if !isEnding, scheduler.random.isTrue(0.2) {
                // A client that has given up tries again, perhaps through another receiver, and cuts the form elsewhere.
                let start = offset
                begin { _ = await self.append(to: resumable, at: start) }
            }
            if !isEnding, scheduler.random.isTrue(0.2) {
                // A client whose connection broke asks while what it has sent is still being stored.
                let pause = scheduler.random.time(0.001...10)
                begin {
                    await self.clients.pause(pause)
                    _ = await self.head(resumable)
                }
            }
            switch await append(to: resumable, at: offset) {
            case .created, .finished, .keyReused: return true
            case .offset(let known), .mismatch(let known): offset = known
            default: break
            }
            if scheduler.random.isTrue(0.04), !isEnding { return await discard(resumable) }
            await clients.pause(scheduler.random.time(0.01...(isPatient ? 5000 : 10)))
        }
        return false
    }

    func discard(_ resumable: Promises.Resumable) async -> Bool {
        let (receiver, id) = (anyReceiver(), resumable.id)
        resumable.isDiscarded = true
        _ = await call(receiver, timeout: 200) { store, process in
            guard let upload = try await store.unfinishedUpload(id) else { return }
            receiver.begin(id, on: ClientConnection())
            try await upload.lock.withLock { try await upload.discard() }
        }
        return false
    }
}
