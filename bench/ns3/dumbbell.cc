// A dumbbell of bulk TCP flows in ns-3, to compare with our simulator's: the same rates, delays,
// buffer, segment size and start times. Prints one line of key=value pairs; secs is processor time.
//
// left1 -+                 +- right1     access: 4 x the bottleneck's rate, 1 ms, no drops
// left2 -+- left -- right -+- right2     bottleneck: drop-tail of --buffer packets
//
// Built and run by `./x bench ns3`.

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

#include <ctime>
#include <iostream>

using namespace ns3;

namespace {

uint64_t g_hops = 0;
uint64_t g_drops = 0;

void CountHop(Ptr<const Packet>) { ++g_hops; }
void CountDrop(Ptr<const Packet>) { ++g_drops; }

NetDeviceContainer Join(PointToPointHelper& link, Ptr<Node> a, Ptr<Node> b) {
    NetDeviceContainer devices = link.Install(a, b);
    for (uint32_t n = 0; n < 2; ++n) {
        devices.Get(n)->TraceConnectWithoutContext("PhyTxEnd", MakeCallback(&CountHop));
    }
    return devices;
}

} // namespace

int main(int argc, char* argv[]) {
    std::string congestion = "newreno";
    uint32_t flows = 10, buffer = 1000, mss = 1448;
    double mbit = 100, rttMs = 40, seconds = 60, warmUp = 10;
    CommandLine options;
    options.AddValue("congestion", "newreno or cubic", congestion);
    options.AddValue("flows", "bulk flows", flows);
    options.AddValue("buffer", "packets at the bottleneck", buffer);
    options.AddValue("mbit", "bottleneck rate", mbit);
    options.AddValue("rtt-ms", "round trip without queues", rttMs);
    options.AddValue("seconds", "virtual time", seconds);
    options.AddValue("warm-up", "goodput counts from here on, seconds", warmUp);
    options.Parse(argc, argv);

    std::string type = congestion == "cubic" ? "ns3::TcpCubic" : "ns3::TcpLinuxReno";
    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue(type));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 28));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 28));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::DropTailQueue<Packet>::MaxSize", StringValue("100000p"));

    NodeContainer left, right, middle;
    left.Create(flows);
    right.Create(flows);
    middle.Create(2);
    InternetStackHelper stack;
    stack.Install(left);
    stack.Install(right);
    stack.Install(middle);

    auto rate = [](double mbit) { return DataRate(static_cast<uint64_t>(mbit * 1e6)); };
    PointToPointHelper access, bottleneck;
    access.SetDeviceAttribute("DataRate", DataRateValue(rate(4 * mbit)));
    access.SetChannelAttribute("Delay", TimeValue(MilliSeconds(1)));
    bottleneck.SetDeviceAttribute("DataRate", DataRateValue(rate(mbit)));
    bottleneck.SetChannelAttribute("Delay", TimeValue(MicroSeconds(rttMs * 500 - 2000)));
    bottleneck.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize",
                        StringValue(std::to_string(buffer) + "p"));

    Ipv4AddressHelper addresses;
    addresses.SetBase("10.0.0.0", "255.255.255.252");
    TrafficControlHelper none;
    auto address = [&](const NetDeviceContainer& devices) {
        Ipv4InterfaceContainer interfaces = addresses.Assign(devices);
        addresses.NewNetwork();
        // The link's own queue is the only one, as in our simulator.
        none.Uninstall(devices);
        return interfaces;
    };
    NetDeviceContainer middleDevices = Join(bottleneck, middle.Get(0), middle.Get(1));
    // Without a queue disc, what the device's full queue would drop is dropped in front of it.
    middle.Get(0)->GetObject<TrafficControlLayer>()->TraceConnectWithoutContext(
        "TcDrop", MakeCallback(&CountDrop));
    address(middleDevices);

    std::vector<Ptr<PacketSink>> sinks;
    for (uint32_t n = 0; n < flows; ++n) {
        address(Join(access, left.Get(n), middle.Get(0)));
        Ipv4InterfaceContainer far = address(Join(access, right.Get(n), middle.Get(1)));
        PacketSinkHelper sink("ns3::TcpSocketFactory",
                              InetSocketAddress(Ipv4Address::GetAny(), 5000));
        ApplicationContainer sinkApp = sink.Install(right.Get(n));
        sinks.push_back(DynamicCast<PacketSink>(sinkApp.Get(0)));
        BulkSendHelper source("ns3::TcpSocketFactory", InetSocketAddress(far.GetAddress(0), 5000));
        source.SetAttribute("SendSize", UintegerValue(mss));
        ApplicationContainer app = source.Install(left.Get(n));
        app.Start(MilliSeconds(7 * n));
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    std::vector<uint64_t> before(flows);
    Simulator::Schedule(Seconds(warmUp), [&]() {
        for (uint32_t n = 0; n < flows; ++n) {
            before[n] = sinks[n]->GetTotalRx();
        }
    });
    Simulator::Stop(Seconds(seconds));
    std::clock_t started = std::clock();
    Simulator::Run();
    double took = static_cast<double>(std::clock() - started) / CLOCKS_PER_SEC;

    double total = 0, squares = 0;
    for (uint32_t n = 0; n < flows; ++n) {
        double goodput = (sinks[n]->GetTotalRx() - before[n]) * 8 / (seconds - warmUp) / 1e6;
        total += goodput;
        squares += goodput * goodput;
    }
    std::cout << "goodput_mbit=" << total << " jain=" << total * total / (flows * squares)
              << " drops=" << g_drops << " hops=" << g_hops
              << " events=" << Simulator::GetEventCount() << " secs=" << took
              << std::endl;
    Simulator::Destroy();
    return 0;
}
