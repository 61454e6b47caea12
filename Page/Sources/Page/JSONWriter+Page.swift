import PostcardDoctor
import PostcardForm
import PostcardFoundation

// What the page shows and the program's JSON does not have. Problems are grouped as the receiver's page has them.

extension JSONWriter {
    mutating func details(_ explanation: Explanation) {
        object { json in
            json.name("bodySize")
            json.value(explanation.bodySize)
            json.name("omitted")
            json.value(explanation.omittedFindings)
            json.name("contentType")
            json.value(explanation.fixedContentType)
            json.name("fixable")
            json.codes(explanation.fixable)
            json.name("unfixable")
            json.codes(explanation.unfixable)
            json.name("problems")
            json.array { json in
                for group in FindingGroup.groups(of: explanation.findings) { json.value(group) }
            }
            json.name("texts")
            json.array { json in for part in explanation.parts { json.value(part.text) } }
            json.name("request")
            json.request(explanation.curl)
        }
    }

    /// Each code once.
    private mutating func codes(_ findings: [Finding]) {
        array { json in
            var seen: Set<String> = []
            for finding in findings where seen.insert(finding.code.rawValue).inserted {
                json.value(finding.code.rawValue)
            }
        }
    }

    private mutating func value(_ group: FindingGroup) {
        let finding = group.finding
        object { json in
            json.facts(of: finding)
            json.name("title")
            json.value(finding.code.title)
            if let part = finding.partIndex {
                json.name("part")
                json.value(part)
            }
            if let swift = finding.swift {
                json.name("swift")
                json.value(swift)
            }
            if let excerpt = finding.excerpt {
                json.name("around")
                json.object { json in
                    json.name("offset")
                    json.value(excerpt.offset)
                    json.name("base64")
                    json.value(excerpt.bytes.base64EncodedString())
                }
            }
            json.name("count")
            json.value(1 + group.repetitions.count)
            json.name("also")
            json.value(group.repetitions)
            json.name("consequences")
            json.array { json in
                for (first, places) in group.consequences {
                    json.object { json in
                        json.name("code")
                        json.value(first.code.rawValue)
                        json.name("message")
                        json.value(first.message)
                        json.name("count")
                        json.value(places.count)
                        json.name("places")
                        json.value(places)
                    }
                }
            }
            json.name("otherConsequences")
            json.value(group.otherConsequences)
        }
    }

    private mutating func value(_ places: FindingGroup.Places) {
        array { json in
            for place in places.first {
                json.object { json in
                    json.name("offset")
                    json.value(place.offset)
                    if let part = place.partIndex {
                        json.name("part")
                        json.value(part)
                    }
                }
            }
        }
    }

    /// Writes the form as it should be sent, from which the page makes code.
    private mutating func request(_ command: CurlCommand?) {
        guard let command, case .parts(let parts) = command.content else { return value(nil as String?) }
        object { json in
            json.name("url")
            json.value(command.url)
            json.name("method")
            json.value(command.method)
            json.name("parts")
            json.array { json in
                for part in parts {
                    json.object { json in
                        switch part {
                        case .text(let name, let text, let contentType):
                            json.member("name", name)
                            json.member("text", text)
                            json.member("contentType", contentType)
                        case .file(let name, let filename, let contentType):
                            json.member("name", name)
                            json.member("filename", filename)
                            json.member("contentType", contentType)
                        }
                    }
                }
            }
        }
    }

    private mutating func member(_ name: StaticString, _ text: String?) {
        self.name(name)
        value(text)
    }

    /// Writes the known servers, for the page's list.
    mutating func servers(_ profiles: [ServerProfile]) {
        array { json in
            for profile in profiles {
                json.object { json in
                    json.member("name", profile.name)
                    json.member("title", profile.title)
                }
            }
        }
    }
}
