import PostcardS3
import PostcardStore

// Compiled and linked; there is no object store to reach.
var bucket = try S3Bucket("s3://uploads/forms")
bucket.endpoint = "http://127.0.0.1:1"
bucket.credentials = .fixed(S3Credentials(accessKeyID: "key", secretAccessKey: "secret"))
bucket.retryTimeout = .zero
do {
    let store = try await S3UploadStore.open(bucket)
    print(try await store.identifiers(limit: 1, after: nil))
} catch let error as S3Error {
    print(error.code)
}
