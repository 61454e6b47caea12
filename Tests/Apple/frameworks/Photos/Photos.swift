// What Postcard uses of the Photos framework (iOS, macOS, Mac Catalyst, tvOS, visionOS; watchOS does not have it).
// None of the classes is assumed to be Sendable but PHObject, which is: developer.apple.com/forums/thread/736359.
@_exported public import Foundation

public enum PHAssetMediaType: Int, Sendable { case unknown = 0, image, video, audio }

open class PHObject: NSObject {
    open var localIdentifier: String { fatalError() }
}
extension PHObject: @unchecked Sendable {}

open class PHFetchOptions: NSObject {}
@available(*, unavailable)
extension PHFetchOptions: @unchecked Sendable {}

open class PHFetchResult<ObjectType: AnyObject>: NSObject {
    open var firstObject: ObjectType? { fatalError() }
}
@available(*, unavailable)
extension PHFetchResult: @unchecked Sendable {}

open class PHAsset: PHObject, @unchecked Sendable {
    open class func fetchAssets(
        withLocalIdentifiers identifiers: [String], options: PHFetchOptions?
    ) -> PHFetchResult<PHAsset> { fatalError() }
    open var mediaType: PHAssetMediaType { fatalError() }
}

public enum PHAssetResourceType: Int, Sendable {
    case photo = 1
    case video = 2
    case audio = 3
    case alternatePhoto = 4
    case fullSizePhoto = 5
    case fullSizeVideo = 6
    case adjustmentData = 7
    case adjustmentBasePhoto = 8
    case pairedVideo = 9
    case fullSizePairedVideo = 10
    case adjustmentBasePairedVideo = 11
    case adjustmentBaseVideo = 12
    case photoProxy = 19
}

open class PHAssetResource: NSObject {
    open var type: PHAssetResourceType { fatalError() }
    // Deprecated from iOS 27, whose replacements iOS 18 does not have.
    open var originalFilename: String { fatalError() }
    open var uniformTypeIdentifier: String { fatalError() }
    open class func assetResources(for asset: PHAsset) -> [PHAssetResource] { fatalError() }
}
@available(*, unavailable)
extension PHAssetResource: @unchecked Sendable {}

public typealias PHAssetResourceProgressHandler = (Double) -> Void
public typealias PHAssetResourceDataRequestID = Int32

open class PHAssetResourceRequestOptions: NSObject {
    open var isNetworkAccessAllowed: Bool {
        get { fatalError() }
        set { fatalError() }
    }
    open var progressHandler: PHAssetResourceProgressHandler? {
        get { fatalError() }
        set { fatalError() }
    }
}
@available(*, unavailable)
extension PHAssetResourceRequestOptions: @unchecked Sendable {}

open class PHAssetResourceManager: NSObject {
    open class func `default`() -> PHAssetResourceManager { fatalError() }
    open func requestData(
        for resource: PHAssetResource, options: PHAssetResourceRequestOptions?,
        dataReceivedHandler handler: @escaping (Data) -> Void,
        completionHandler: @escaping ((any Error)?) -> Void
    ) -> PHAssetResourceDataRequestID { fatalError() }
    open func cancelDataRequest(_ requestID: PHAssetResourceDataRequestID) { fatalError() }
}
@available(*, unavailable)
extension PHAssetResourceManager: @unchecked Sendable {}
