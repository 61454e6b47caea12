// The types of Foundation that forms need. Where FoundationEssentials exists, a program that uses nothing else of
// Foundation does not link the rest of it, which is many times larger.
#if canImport(FoundationEssentials)
@_exported public import FoundationEssentials
#else
@_exported public import Foundation
#endif
