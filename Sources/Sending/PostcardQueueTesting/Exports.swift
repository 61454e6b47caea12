// `import PostcardQueueTesting` also imports the queue, and the responses and expectations for its uploads.
@_exported public import PostcardQueue
@_exported public import PostcardTesting
