// ios: 'span' is only available in iOS 26.0 or newer
func firstByte(of bytes: [UInt8]) -> UInt8 { bytes.span[0] }
