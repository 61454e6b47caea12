import PostcardDoctor
import PostcardForm
import Runtime

// The functions that the page calls. One input at a time is explained: begin, read pieces, finish, and take the answer; then,
// to fix it, beginFix and the same pieces again.

private enum Reader {
    case none
    case input(InputExamination)
    case body(FormExamination)
    case failed(InputError)
}

private struct Answer {
    var json: [UInt8] = []
    var explanation: Explanation?
    var contentType: String?
}

private enum Fixing {
    case none
    case request(RequestInput, RequestFixer)
    case body(RequestFixer)
}

nonisolated(unsafe) private var reader = Reader.none
nonisolated(unsafe) private var answer = Answer()
nonisolated(unsafe) private var fixing = Fixing.none
nonisolated(unsafe) private var servers: [ServerProfile] = []

private func text(_ pointer: UnsafeRawPointer?, _ count: Int) -> String {
    String(decoding: UnsafeRawBufferPointer(start: pointer, count: count), as: UTF8.self)
}

@_expose(wasm, "allocate") @_cdecl("allocate")
public func allocate(_ count: Int) -> UnsafeMutableRawPointer {
    UnsafeMutableRawPointer.allocate(byteCount: count, alignment: 8)
}

@_expose(wasm, "deallocate") @_cdecl("deallocate")
public func deallocate(_ pointer: UnsafeMutableRawPointer) { pointer.deallocate() }

/// Begins an input: a request, or with `hasContentType` a body.
@_expose(wasm, "begin") @_cdecl("begin")
public func begin(_ hasContentType: Int32, _ contentType: UnsafeRawPointer?, _ count: Int, _ entry: Int) {
    answer = Answer()
    fixing = .none
    if hasContentType != 0 {
        let type = text(contentType, count)
        answer.contentType = type
        reader = .body(FormExamination(contentType: type))
    } else {
        reader = .input(InputExamination(entry: entry > 0 ? entry : nil))
    }
}

/// Names the servers whose default settings count too, separated by commas.
@_expose(wasm, "setServers") @_cdecl("setServers")
public func setServers(_ names: UnsafeRawPointer?, _ count: Int) {
    servers = text(names, count).split(separator: ",").compactMap { ServerProfile(named: String($0)) }
}

/// Reads the next bytes.
@_expose(wasm, "read") @_cdecl("read")
public func readPiece(_ bytes: UnsafeRawPointer, _ count: Int) {
    let span = UnsafeRawBufferPointer(start: bytes, count: count).bytes
    switch reader {
    case .input(var examination):
        reader = .none
        do throws(InputError) {
            try examination.read(span)
            reader = .input(examination)
        } catch {
            reader = .failed(error)
        }
    case .body(var examination):
        reader = .none
        examination.read(span)
        reader = .body(examination)
    case .none, .failed: break
    }
}

/// Explains what was read.
///
/// - Returns: The length of the answer.
@_expose(wasm, "finish") @_cdecl("finish")
public func finish() -> Int {
    var json = JSONWriter()
    switch reader {
    case .input(var examination):
        do throws(InputError) {
            let explanation = try examination.finish()
            let judged = servers.isEmpty ? explanation : explanation.judged(against: servers)
            answer.explanation = explanation
            json.value(judged, format: examination.format?.rawValue ?? "body", remarks: examination.remarks)
        } catch {
            write(error, &json)
        }
    case .body(var examination):
        let explanation = examination.finish()
        let judged = servers.isEmpty ? explanation : explanation.judged(against: servers)
        answer.explanation = explanation
        json.value(judged, format: "body", remarks: [])
    case .failed(let error): write(error, &json)
    case .none: break
    }
    reader = .none
    answer.json = json.bytes
    return answer.json.count
}

private func write(_ error: InputError, _ json: inout JSONWriter) {
    json.object { json in
        json.name("error")
        json.value(error.code.rawValue)
        json.name("message")
        json.value(error.message)
        json.name("advice")
        json.value(error.advice)
        json.name("uploads")
        json.array { json in for upload in error.uploads { json.value(upload) } }
    }
}

/// Copies the answer to a place that the page has allocated.
@_expose(wasm, "takeAnswer") @_cdecl("takeAnswer")
public func takeAnswer(_ place: UnsafeMutableRawPointer) {
    answer.json.withUnsafeBytes { bytes in
        if let base = bytes.baseAddress { place.copyMemory(from: base, byteCount: bytes.count) }
    }
}

/// Begins to fix the input that was explained last.
///
/// - Returns: 1 if something can be fixed for certain.
@_expose(wasm, "beginFix") @_cdecl("beginFix")
public func beginFix(_ entry: Int) -> Int32 {
    guard let explanation = answer.explanation, explanation.isValid || !explanation.fixable.isEmpty else { return 0 }
    let fixer = RequestFixer(explanation)
    fixing =
        answer.contentType == nil
        ? .request(RequestInput(entry: entry > 0 ? entry : nil), fixer) : .body(fixer)
    return 1
}

private func handOn(_ span: RawSpan) {
    span.withUnsafeBytes { page_write($0.baseAddress, $0.count) }
}

/// Fixes the next bytes, which the page gets by `write`.
@_expose(wasm, "fix") @_cdecl("fix")
public func fixPiece(_ bytes: UnsafeRawPointer, _ count: Int) {
    let span = UnsafeRawBufferPointer(start: bytes, count: count).bytes
    switch fixing {
    case .body(var fixer):
        fixing = .none
        fixer.read(span, handOn: handOn)
        fixing = .body(fixer)
    case .request(var input, var fixer):
        fixing = .none
        do throws(InputError) {
            try input.read(span) { fixer.read($0, handOn: handOn) }
            fixing = .request(input, fixer)
        } catch {}
    case .none: break
    }
}

/// Ends the fixed input.
///
/// - Returns: 0 if it could not be read again.
@_expose(wasm, "finishFix") @_cdecl("finishFix")
public func finishFix() -> Int32 {
    defer { fixing = .none }
    switch fixing {
    case .body(var fixer): fixer.finish(handOn: handOn)
    case .request(var input, var fixer):
        do throws(InputError) {
            try input.finish { fixer.read($0, handOn: handOn) }
        } catch {
            return 0
        }
        fixer.finish(handOn: handOn)
    case .none: return 0
    }
    return 1
}
