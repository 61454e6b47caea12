import PostcardStore

extension ShareLimits {
    /// - Parameters:
    ///   - options: The limits of the upload routes.
    ///   - connections: The maximum number of connections. Defaults to what the process may have open.
    package init(_ options: UploadOptions, connections: Int = OpenFiles.maximumConnections) {
        self.init(clientShare: options.clientShare)
        // An upload and a response have a file each.
        let files = max(OpenFiles.forRequests(connections: connections) / 2, 1)
        self[.connections] = connections
        self[.proxiedConnections] = connections
        self[.requests] = options.maximumConcurrentRequests
        self[.uploads] = min(options.maximumConcurrentUploads, files)
        self[.textBytes] = options.maximumHeldBytes
        self[.responses] = min(options.maximumConcurrentRequests, files)
        self[.responseBytes] = options.maximumHeldResponseBytes
        self[.screenings] = options.maximumConcurrentScreenings
        // A picture needs as much memory as the rest of the receiver.
        self[.thumbnails] = 1
        if let resumption = options.resumption {
            self[.unfinishedUploads] = resumption.maximumUnfinished
            self[.unfinishedBytes] = Int(clamping: resumption.maximumUnfinishedBytes)
        }
    }
}
