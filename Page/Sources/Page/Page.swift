import PostcardDoctor
import PostcardForm
import Runtime

// The functions that the page calls. One input at a time is explained: begin, read pieces, finish, and take the answer; then,
// to fix it, beginFix, the same pieces by readAgain, and finishAgain.

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
    var format = "body"
    var remarks: [String] = []

    /// Writes the explanation, with what the chosen servers refuse.
    mutating func write() {
        guard let explanation else { return }
        var json = JSONWriter()
        json.value(
            servers.isEmpty ? explanation : explanation.judged(against: servers), format: format, remarks: remarks)
        self.json = json.bytes
    }
}

/// Examines what was fixed while the page gets it: what is found again, or changes a content, is no fix.
private struct FixedReader {
    var request: RequestExamination?
    var body: FormExamination?

    mutating func read(_ span: RawSpan) {
        request?.read(span)
        body?.read(span)
    }

    mutating func isFix(of explanation: Explanation) -> Bool {
        guard let fixed = request?.finish() ?? body?.finish() else { return false }
        return explanation.keepsContents(in: fixed)
            && (explanation.isValid || !explanation.outcome(reading: fixed).fixed.isEmpty)
    }
}

/// What becomes of an input that is read a second time.
private enum SecondReading {
    case none
    case fix(RequestInput?, RequestFixer)
    case body(RequestInput?, RequestSplitter)
}

nonisolated(unsafe) private var reader = Reader.none
nonisolated(unsafe) private var answer = Answer()
nonisolated(unsafe) private var second = SecondReading.none
nonisolated(unsafe) private var fixedReader = FixedReader()
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
    second = .none
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
    switch reader {
    case .input(var examination):
        do throws(InputError) {
            answer.explanation = try examination.finish()
            answer.format = examination.format?.rawValue ?? "body"
            answer.remarks = examination.remarks
            answer.write()
        } catch {
            answer.json = json(of: error)
        }
    case .body(var examination):
        answer.explanation = examination.finish()
        answer.write()
    case .failed(let error): answer.json = json(of: error)
    case .none: break
    }
    reader = .none
    return answer.json.count
}

/// Explains the same input again, with what the servers refuse that were chosen since.
///
/// - Returns: The length of the answer.
@_expose(wasm, "judge") @_cdecl("judge")
public func judge() -> Int {
    answer.write()
    return answer.json.count
}

/// Lists the known servers.
///
/// - Returns: The length of the answer.
@_expose(wasm, "listServers") @_cdecl("listServers")
public func listServers() -> Int {
    var json = JSONWriter()
    json.servers(ServerProfile.all)
    answer.json = json.bytes
    return answer.json.count
}

private func json(of error: InputError) -> [UInt8] {
    var json = JSONWriter()
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
    return json.bytes
}

/// Copies the answer to a place that the page has allocated.
@_expose(wasm, "takeAnswer") @_cdecl("takeAnswer")
public func takeAnswer(_ place: UnsafeMutableRawPointer) {
    answer.json.withUnsafeBytes { bytes in
        if let base = bytes.baseAddress { place.copyMemory(from: base, byteCount: bytes.count) }
    }
}

/// Begins to fix the input that was explained last, which is read a second time.
///
/// - Returns: 1 if something can be fixed for certain.
@_expose(wasm, "beginFix") @_cdecl("beginFix")
public func beginFix(_ entry: Int) -> Int32 {
    guard let explanation = answer.explanation, explanation.isValid || !explanation.fixable.isEmpty else { return 0 }
    fixedReader = FixedReader()
    if let type = answer.contentType {
        fixedReader.body = FormExamination(contentType: explanation.fixedContentType ?? type)
    } else {
        fixedReader.request = RequestExamination()
    }
    second = .fix(secondInput(entry), RequestFixer(explanation))
    return 1
}

/// Begins to extract the body of the input that was explained last, in which the offsets of parts count.
///
/// - Returns: 0 if nothing was explained.
@_expose(wasm, "beginBody") @_cdecl("beginBody")
public func beginBody(_ entry: Int) -> Int32 {
    guard let explanation = answer.explanation else { return 0 }
    second = .body(secondInput(entry), RequestSplitter(explanation))
    return 1
}

private func secondInput(_ entry: Int) -> RequestInput? {
    answer.contentType == nil ? RequestInput(entry: entry > 0 ? entry : nil) : nil
}

private func handOnFixed(_ span: RawSpan) {
    fixedReader.read(span)
    handOn(span)
}

private func handOn(_ span: RawSpan) {
    span.withUnsafeBytes { page_write($0.baseAddress, $0.count) }
}

/// Reads the next bytes a second time. The page gets what becomes of them by `write`.
@_expose(wasm, "readAgain") @_cdecl("readAgain")
public func readAgain(_ bytes: UnsafeRawPointer, _ count: Int) {
    let span = UnsafeRawBufferPointer(start: bytes, count: count).bytes
    switch second {
    case .fix(nil, var fixer):
        second = .none
        fixer.read(span, handOn: handOnFixed)
        second = .fix(nil, fixer)
    case .fix(var input?, var fixer):
        second = .none
        do throws(InputError) {
            try input.read(span) { fixer.read($0, handOn: handOnFixed) }
            second = .fix(input, fixer)
        } catch {}
    case .body(nil, var splitter):
        second = .none
        splitter.read(span, handOnHead: { _ in }, handOnBody: handOn)
        second = .body(nil, splitter)
    case .body(var input?, var splitter):
        second = .none
        do throws(InputError) {
            try input.read(span) { splitter.read($0, handOnHead: { _ in }, handOnBody: handOn) }
            second = .body(input, splitter)
        } catch {}
    case .none: break
    }
}

/// Ends the second reading.
///
/// - Returns: 0 if the input could not be read again, or if what was fixed is no better.
@_expose(wasm, "finishAgain") @_cdecl("finishAgain")
public func finishAgain() -> Int32 {
    defer { second = .none }
    switch second {
    case .fix(let input, var fixer):
        if var input {
            do throws(InputError) {
                try input.finish { fixer.read($0, handOn: handOnFixed) }
            } catch {
                return 0
            }
        }
        fixer.finish(handOn: handOnFixed)
        guard let explanation = answer.explanation, fixedReader.isFix(of: explanation) else { return 0 }
    case .body(var input?, var splitter):
        do throws(InputError) {
            try input.finish { splitter.read($0, handOnHead: { _ in }, handOnBody: handOn) }
        } catch {
            return 0
        }
    case .body(nil, _): break
    case .none: return 0
    }
    return 1
}
