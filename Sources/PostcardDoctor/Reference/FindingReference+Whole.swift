/// What the reference says of a form as a whole, where the doctor alone looks.
extension FindingReference {
    static let noParts = FindingReference(
        .whole, "The form has no parts",
        cause: "There is a close delimiter and nothing before it. Some servers take that for an empty form, "
            + "some refuse it.",
        example: #"--XX--\r\n"#, fix: "Append a part, or send no body.")

    static let fieldsAfterFile = FindingReference(
        .whole, "Fields follow the file",
        cause: "S3's POST reads fields up to the file and ignores what follows, so that the policy or the key "
            + "is missing.",
        example: "name=\"file\" before name=\"key\"", fix: "Let the file be the last part.")

    static let overCommonDefaults = FindingReference(
        .whole, "The form is over common servers' defaults",
        cause: "Servers refuse what is larger than they were told to take, mostly with 413, and some drop it "
            + "without a word.",
        example: "A photo of 3 MB to PHP, which takes 2 MB",
        fix: "Raise the setting that is named, or send less.")

    static let refusedByServer = FindingReference(
        .whole, "The server that was asked about refuses it",
        cause: "By its rules and default settings this server refuses the form, or reads it otherwise.",
        example: "--against nginx, and a body of 3 MB",
        fix: "Change the setting that is named, or the form.")
}
