// The types of Foundation that forms need. Programs that use only FoundationEssentials do not link the rest of
// Foundation, which is many times larger.
#if canImport(FoundationEssentials)
@_exported public import FoundationEssentials
#else
@_exported public import Foundation
#endif
