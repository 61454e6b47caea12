// `import PostcardQueueTesting` brings the queue, and the answers and expectations of its uploads.
@_exported public import PostcardQueue
@_exported public import PostcardTesting
