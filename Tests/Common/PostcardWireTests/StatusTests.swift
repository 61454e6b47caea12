import HTTPTypes
import PostcardWire
import Testing

@Suite struct StatusTests {
    @Test(arguments: [(-1, 0), (0, 0), (201, 201), (999, 999), (1000, 999), (Int64.max, 999), (Int64.min, 0)])
    func `a number that no status may have becomes the nearest status`(number: Int64, code: Int) {
        #expect(HTTPResponse.Status(clamping: number).code == code)
    }
}
