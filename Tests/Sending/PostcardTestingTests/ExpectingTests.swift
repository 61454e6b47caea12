import Foundation
import PostcardTesting
import Testing

@Suite struct ExpectingTests {
    /// What a form has, what a test expects of it, and with which words it fails.
    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        var parts: @Sendable (inout MultipartForm) -> Void = { _ in }
        let expect: @Sendable (SentUpload) throws -> Void
        let messages: [String]
    }

    private static func sent(_ parts: (inout MultipartForm) -> Void) async throws -> SentUpload {
        let server = TestServer(.created)
        var form = MultipartForm()
        parts(&form)
        try await UploadClient(transport: server).upload(form, to: try #require(PetAPI.url))
        return try server.upload()
    }

    static let pet: @Sendable (inout MultipartForm) -> Void = { form in
        form.append("초코", named: "nmae")
        form.append(PetAPI.photo, named: "petImage", filename: "1.jpg", contentType: .jpeg)
        form.append(
            PetAPI.photo + Data(count: 31_195), named: "petImage", filename: "2.jpg", contentType: .jpeg,
            metadata: .asIs)
    }

    static let cases = [
        Case(
            testDescription: "all as expected", parts: pet,
            expect: { sent in
                sent.expectText("nmae", "초코")
                sent.expectFile("petImage", type: .jpeg, bytes: 9...9, hasLocation: false)
                sent.expectFile("petImage", at: 1)
                sent.expectNothingElse()
            }, messages: []),
        Case(
            testDescription: "a wrong name", parts: pet, expect: { $0.expectText("name", "초코") },
            messages: [
                """
                There is no field "name". The form has "nmae" (text, "초코") and "petImage" (2 files). Write: \
                form.append("초코", named: "name")
                """
            ]),
        Case(
            testDescription: "a wrong value", parts: pet, expect: { $0.expectText("nmae", "보리") },
            messages: [#"The field "nmae" is "초코", not "보리". Write: form.append("보리", named: "nmae")"#]),
        Case(
            testDescription: "a file for a text", parts: pet, expect: { $0.expectText("petImage", "x") },
            messages: [
                """
                "petImage" must be text, but was sent as a file: 1.jpg, image/jpeg, 9 bytes. Write: form.append("x", \
                named: "petImage")
                """
            ]),
        Case(
            testDescription: "a text for a file", parts: pet, expect: { $0.expectFile("nmae") },
            messages: [
                """
                "nmae" must be a file, but was sent as text, "초코". Write: form.append(fileAt: url, named: "nmae")
                """
            ]),
        Case(
            testDescription: "one file too few", parts: pet, expect: { $0.expectFile("petImage", at: 2) },
            messages: [
                """
                There is no petImage[2]. The form has "nmae" (text, "초코") and "petImage" (2 files). Write: \
                form.append(fileAt: url, named: "petImage")
                """
            ]),
        Case(
            testDescription: "a picture too large", parts: pet,
            expect: { $0.expectFile("petImage", at: 1, bytes: 1...20_000) },
            messages: [
                """
                petImage[1] has 31,204 bytes, and at most 20,000 are expected: 2.jpg, image/jpeg, 31,204 bytes. Fit it: \
                form.append(fileAt: url, named: "petImage", fitting: PictureLimit(maximumBytes: 20000))
                """
            ]),
        Case(
            testDescription: "a file too small", parts: pet, expect: { $0.expectFile("petImage", bytes: 16...99) },
            messages: [
                "petImage[0] has 9 bytes, and at least 16 are expected: 1.jpg, image/jpeg, 9 bytes. Send the whole file."
            ]),
        Case(
            testDescription: "another type", parts: pet, expect: { $0.expectFile("petImage", type: .png) },
            messages: [
                """
                petImage[0] is sent as image/jpeg, not as image/png, and its bytes are image/jpeg: 1.jpg, image/jpeg, \
                9 bytes. Send an accepted type, and name it in the part's Content-Type.
                """
            ]),
        Case(
            testDescription: "bytes of another type",
            parts: { $0.append(PetAPI.photo, named: "a", filename: "a.png", contentType: .png, metadata: .asIs) },
            expect: { $0.expectFile("a", type: .png) },
            messages: [
                """
                "a" is sent as image/png, and its bytes are image/jpeg: a.png, image/png, 9 bytes. Send the file's own \
                bytes, in an accepted format.
                """
            ]),
        Case(
            testDescription: "a location that is not there", parts: pet,
            expect: { $0.expectFile("petImage", hasLocation: true) },
            messages: [
                """
                petImage[0] has no place where it was taken: 1.jpg, image/jpeg, 9 bytes. Write: metadata: .asIs
                """
            ]),
        Case(
            testDescription: "parts that no one expects", parts: pet,
            expect: { sent in
                sent.expectFile("petImage")
                sent.expectFile("petImage", at: 1)
                sent.expectNothingElse()
            },
            messages: [
                """
                The form also has "nmae" (text, "초코"). Leave it out, or expect it before expectNothingElse().
                """
            ]),
        Case(
            testDescription: "rules", parts: pet,
            expect: { sent in
                sent.expect(try FormRules(fields: ["nmae": .init(atLeast: 1)], files: ["petImage": .init(atMost: 2)]))
                sent.expectNothingElse()
            }, messages: []),
        Case(
            testDescription: "broken rules", parts: pet,
            expect: { $0.expect(try FormRules(fields: ["name": .init(atLeast: 1)])) },
            messages: [
                """
                No field "nmae" is expected. It is text, "초코". Leave it out, spell its name as in the rules, or set otherParts there.
                """
            ]),
    ]

    @Test(arguments: cases) func `a failure quotes the part and says what to write`(_ row: Case) async throws {
        let sent = try await Self.sent(row.parts)
        let messages = await failures { try row.expect(sent) }
        #expect(messages == row.messages)
    }
}
