#if Server
import HTTPTypes
import Hummingbird

/// The page at `/`: a plain form that works in every browser, with scripts or without.
struct FormPage: Sendable {
    let uploadPath: String

    var response: Response {
        Response(
            status: .ok,
            headers: [
                .contentType: "text/html; charset=utf-8",
                .contentSecurityPolicy: "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'",
                .xContentTypeOptions: "nosniff",
            ],
            body: ResponseBody(byteBuffer: ByteBuffer(string: html)))
    }

    private var html: String {
        """
        <!doctype html>
        <html lang="en">
        <meta charset="utf-8">
        <meta name="viewport" content="width=device-width, initial-scale=1">
        <title>Postcard</title>
        <style>
        :root { color-scheme: light dark }
        body { font: 1rem/1.5 system-ui, sans-serif; max-width: 32rem; margin: 2rem auto; padding: 0 1rem }
        label, input, button { display: block; font: inherit }
        input { width: 100%; box-sizing: border-box; margin: .25rem 0 1rem; padding: .4rem }
        button { padding: .5rem 1.25rem }
        </style>
        <h1>Postcard</h1>
        <p>Send pictures and a few words. The answer is the record of what was received, as JSON.</p>
        <form method="post" enctype="multipart/form-data" action="\(escaped(uploadPath))">
        <label for="message">Words</label>
        <input id="message" name="message">
        <label for="files">Pictures</label>
        <input id="files" name="files" type="file" multiple>
        <button>Send</button>
        </form>
        <p><a href="\(UploadRecord.readingPath)">What was received</a></p>
        </html>

        """
    }

    private func escaped(_ text: String) -> String {
        text.replacing("&", with: "&amp;").replacing("\"", with: "&quot;").replacing("<", with: "&lt;")
    }
}
#endif
