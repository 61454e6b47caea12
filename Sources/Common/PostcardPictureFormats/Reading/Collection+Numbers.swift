extension Collection<UInt8> {
    /// The number whose first byte is the greatest. Up to seven bytes, so that it is never negative.
    var bigEndian: Int64 { reduce(0) { $0 << 8 | Int64($1) } }

    var littleEndian: Int64 { reversed().bigEndian }
}
