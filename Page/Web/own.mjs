// The Doctor's sentences in the page's own words: some of its texts name options of the program, which a page does not have,
// and what it says of an input that is no request is not among the translated problems.

/** Each sentence, and the name of the page's own. What is in brackets becomes the value of that name. */
const sentences = [
  [/^The input is empty\.$/, "ownEmpty"],
  [/^The input is a form's body alone: the head of its request is missing\.$/, "ownBody"],
  [/^The input is an HTTP response, not a request\.$/, "ownResponse"],
  [/^The input is what curl -v prints, which does not show the body\.$/, "ownVerbose"],
  [/^The input is encrypted: it begins as a TLS connection does\.$/, "ownTLS"],
  [/^The input is raw HTTP\/2, whose frames are not supported here\.$/, "ownHTTP2"],
  [/^The input is JSON, not an HTTP request\.$/, "ownJSON"],
  [/^The input is a form in application\/x-www-form-urlencoded, without its request's head\.$/, "ownURLEncoded"],
  [/^The input is text in UTF-16, in which no request is sent\.$/, "ownUTF16"],
  [/^The input is a packet capture, not a request\.$/, "ownCapture"],
  [/^The input is a program, not an HTTP request\.$/, "ownProgram"],
  [/^The input is a file of type (?<type>.*), not an HTTP request\.$/, "ownFile"],
  [/^The input is text, not an HTTP request: it begins with no request line and no header fields\.$/, "ownText"],
  [/^The input is not an HTTP request: it begins with bytes that are not text\.$/, "ownBinary"],
  [/^The input does not begin with a request line\.$/, "ownNoRequestLine"],
  [/^The input begins with a delimiter, not with a request line: it is a body alone\.$/, "ownBody"],
  [/^Add the Content-Type it was sent with: --content-type '(?<type>.*)'\.$/s, "ownAddType"],
  [/^Pass the request as it was sent, .*in --content-type\.$/, "ownPass"],
  [/^Record the request with curl --trace FILE, which keeps every byte\.$/, "ownRecord"],
  [/^Record the request with curl --trace FILE or with a proxy .* --listen PORT\.$/, "ownRecordBody"],
  [/^(?<fix>curl --trace FILE이나 .*), postcard explain --listen PORT로 보내세요\.$/, "ownRecordBody"],
  [/^Send to http:\/\/ instead of https:\/\/, or record the request in the client or a proxy\.$/, "ownRecordTLS"],
  [/^Record it with curl --trace or as a HAR, or send it over HTTP\/1\.1\.$/, "ownRecordHTTP2"],
  [/^Save it as it was sent; a shell that redirects text, such as PowerShell, changes the bytes\.$/, "ownSaveUTF16"],
  [/^Follow the TCP stream and save the bytes that the client sent as raw\.$/, "ownFollowStream"],
  [/^(The input|The trace) has (?<count>\d+) requests; this is number (?<taken>\d+)\. Choose another with --entry N\.$/, "ownEntry"],
  [/^Choose one by its number, with --entry N\.$/, "ownChoose"],
  [/^The command has none of the body's bytes, .* explain that file\.$/, "ownMadeLater"],
  [/^Browsers leave out what files contain when they copy a request.*$/, "ownLeftOut"],
  [/^The trace was written by --trace-ascii, .*$/, "ownTraceASCII"],
  [/^Lines of the trace are missing or were changed.*$/, "ownDamaged"],
  [/^Remove the position if the server does not need it: postcard send .*$/, "ownLocation"],
  [/^서버에 필요하지 않으면 위치를 지우세요\. postcard send .*$/, "ownLocation"],
  [/^Send the form again and export that request alone, or record it with curl --trace FILE\.$/, "ownExport"],
  [/^Clear the recorder\. Send the form again .*$/, "ownClear"],
];

/** A sentence in the page's own words, or as it is. `words` looks up a text by its name. */
export function own(sentence, words) {
  for (const [pattern, name] of sentences) {
    const found = sentence?.match(pattern);
    if (found) return words(name, found.groups ?? {});
  }
  return sentence;
}

/** The names of all sentences, for tests. */
export const names = [...new Set(sentences.map(([, name]) => name))];
