import Foundation
import NIOCore
import PostcardForm
import PostcardS3
import PostcardServer

/// Clients that send whole forms, and read, list and delete records.
extension Simulation {
    func client() async {
        while !isOver {
            await clients.pause(scheduler.random.time(0.001...(isPatient ? 20_000 : 20)))
            switch scheduler.random.number(0...99) {
            case ..<40: await post()
            case ..<70: await resume()
            case ..<80: await read()
            case ..<85: await list()
            default: await delete()
            }
        }
    }

    func newForm(_ key: UploadKey?) -> Form {
        if let key, let known = formsOfKeys[key.digest]?.first, scheduler.random.isTrue(0.8) { return known }
        lastForm += 1
        let form = Form.random(number: lastForm, &scheduler.random)
        promises.add(form)
        if let key { formsOfKeys[key.digest, default: []].append(form) }
        return form
    }

    func anyKey() -> UploadKey { UploadKey("key \(scheduler.random.number(0...2))", scope: "simulation") }

    func post() async {
        let key = scheduler.random.isTrue(0.75) ? anyKey() : nil
        let form = newForm(key)
        if key != nil, scheduler.random.isTrue(0.3) {
            // A balancer repeats the request to another receiver while the first is at it.
            begin { await self.send(form, under: key, tries: 1) }
        }
        await send(form, under: key, tries: key == nil ? 1 : 4)
    }

    @discardableResult
    func send(_ form: Form, under key: UploadKey?, tries: Int, to receiver: SimulatedReceiver? = nil) async -> Bool {
        for _ in 0..<tries {
            let connection = ClientConnection()
            let pace = self.pace(connection)
            let receiver = receiver ?? anyReceiver()
            let result = await call(receiver, timeout: timeout(pace), on: connection) { store, process in
                try await SimulatedReceiver.receive(form, under: key, pace, in: store, on: process)
            }
            say("post \(form.number) \(key?.digest.prefix(4) ?? "-"): \(Self.text(result))")
            switch result {
            case .success(.created(let record)):
                promises.created(record, form)
                return true
            case .success(.keyReused):
                refused(form, key)
                return false
            case .success, .failure: break
            }
            await clients.pause(scheduler.random.time(0.1...(isPatient ? 3000 : 30)))
        }
        return false
    }

    static func text<Value>(_ result: Swift.Result<Value, any Error>) -> String {
        switch result {
        case .success(let value as SimulatedReceiver.Response):
            if case .created(let record) = value { "created \(record.id)" } else { "\(value)" }
        case .success(let value): "\(value)"
        case .failure(let error as UploadStoreError): "\(error.code) \(error.message)"
        case .failure(let error): "\(error)"
        }
    }

    func refused(_ form: Form, _ key: UploadKey?) {
        let others = formsOfKeys[key?.digest ?? ""]?.filter { $0 != form } ?? []
        if others.isEmpty { promises.breaks(.noLostCommit, "Form \(form.number) is refused, and its key has no other") }
    }

    // MARK: - Records

    func read() async {
        guard let id = promises.acknowledged.randomElement(using: &scheduler.random) else { return }
        await read(id, anyReceiver())
    }

    func read(_ id: UploadID, _ receiver: SimulatedReceiver) async {
        let wasDeleted = promises.isDeleted(id)
        let result = await call(receiver, timeout: 200) { store, _ -> UploadRecord? in
            guard let record = try await store.record(id) else { return nil }
            for (index, described) in record.files.enumerated() {
                guard let file = try await store.openFile(index, of: id) else { return nil }
                var bytes: [UInt8] = []
                while bytes.count < file.size {
                    bytes += Array(try await file.read(at: Int64(bytes.count), count: 30).readableBytesView)
                }
                guard Form.hash(bytes) == described.sha256 else {
                    throw UploadStoreError(.damaged, "A file is not what its record says.")
                }
            }
            return record
        }
        say("read \(id): \(Self.text(result.map { $0 != nil }))")
        switch result {
        case .success(.some): if wasDeleted { promises.breaks(.deletionHolds, "\(id) is read after its deletion") }
        case .success(nil):
            if !promises.isBeingDeleted(id) { promises.breaks(.readableAtOnce, "\(id) is not found") }
        case .failure(let error as UploadStoreError):
            if error.code == .damaged || isEnding, !promises.isBeingDeleted(id) {
                promises.breaks(.readableAtOnce, "\(id) cannot be read: \(error)")
            }
        case .failure: if isEnding { promises.breaks(.progress, "\(id) cannot be read by a receiver that runs") }
        }
    }

    func list() async {
        let known = promises.acknowledged
        let gone = Set(known.filter { promises.isDeleted($0) })
        let result = await call(anyReceiver(), timeout: 400) { store, _ in
            try await store.identifiers(limit: 10_000, after: nil)
        }
        guard case .success(let listed) = result else { return }
        say("list \(listed.count)")
        if listed != listed.sorted(by: >) { promises.breaks(.readableAtOnce, "A list is not in order") }
        let all = Set(listed)
        for id in known where !promises.isBeingDeleted(id) && !all.contains(id) {
            promises.breaks(.readableAtOnce, "\(id) is not in a list")
        }
        if let id = listed.first(where: { gone.contains($0) }) {
            promises.breaks(.deletionHolds, "\(id) is in a list after its deletion")
        }
    }

    func delete() async {
        guard let id = promises.acknowledged.randomElement(using: &scheduler.random) else { return }
        promises.beginsToDelete(id)
        let result = await call(anyReceiver(), timeout: 200) { store, _ in try await store.delete(id) }
        say("delete \(id): \(Self.text(result))")
        guard case .success(let wasThere) = result else { return }
        promises.deletes(id, wasThere: wasThere)
    }
}
