//===- MachinesTest.cpp - the tables of devices and links -----------------===//
#include "passes/target/Machines.h"
#include "passes/target/Rates.h"

#include <gtest/gtest.h>

namespace tandem {
namespace {

TEST(Machines, TheTableIsRight) {
  const Machines &machines = Machines::builtin();
  std::string error;
  const DeviceRow *h100 = machines.device("h100", error);
  ASSERT_TRUE(h100) << error;
  EXPECT_EQ(h100->target, "cuda:sm_90");
  EXPECT_EQ(h100->narrow, 989e12);
  for (const auto &[name, row] : machines.devices()) {
    EXPECT_FALSE(row.source.empty()) << name;
    EXPECT_TRUE(machines.link(row.links, error)) << name << ": " << error;
  }
  for (const auto &[name, row] : machines.links())
    EXPECT_FALSE(row.source.empty()) << name;
}

// What plans are made for is a row of the table.
TEST(Machines, RatesOfPlansAreThoseOfTheTable) {
  const Machines &machines = Machines::builtin();
  const LinkRow &link = machines.links().find("ethernet-25")->second;
  Rates rates = Rates::of(machines.devices().find("cpu")->second, 256);
  EXPECT_EQ(rates.links, link.rate);
  EXPECT_EQ(rates.messages, 1 / link.latency);
  EXPECT_EQ(rates.products, 8 * 3e9 * 8 * 4);
  EXPECT_EQ(rates.bytes, 40e9);
}

TEST(Machines, AFileAddsRowsAndReplacesThem) {
  Machines machines = Machines::builtin();
  std::string error;
  ASSERT_TRUE(machines.add(R"({"links": {
      "ib400": {"rate": 1e9, "latency": 1e-6, "source": "mine"},
      "wire": {"rate": 2e9, "latency": 1e-6, "ranks": 4, "source": "mine"}}})",
                           error))
      << error;
  EXPECT_EQ(machines.link("ib400", error)->rate, 1e9);
  EXPECT_EQ(machines.link("wire", error)->ranks, 4);
  EXPECT_EQ(Machines::builtin().link("ib400", error)->rate, 50e9);
}

std::string errorOf(std::string_view text) {
  Machines machines = Machines::builtin();
  std::string error;
  EXPECT_FALSE(machines.add(text, error)) << text;
  return error;
}

TEST(Machines, WrongTablesAreRefusedWithThePlace) {
  EXPECT_EQ(errorOf(R"({"links": {"x": {"rate": -1, "latency": 1e-6,
                        "speed": 3, "source": "s"}}})"),
            "links.x.rate: expected a number above 0, at most 1e30, but got "
            "-1; links.x: unknown field 'speed'; known are 'rate', 'latency', "
            "'achieves', "
            "'ranks', 'shared', 'device', 'source'");
  EXPECT_EQ(errorOf(R"({"links": {"x": {"latency": 1}}})"),
            "links.x: expected a number 'rate'; links.x: expected a text "
            "'source'");
  EXPECT_NE(errorOf(R"({"links": {"x": {"rate": 1, "latency": 1,
                        "achieves": 1.5, "source": "s"}}})")
                .find("links.x.achieves: expected a number above 0, at most 1"),
            std::string::npos);
  EXPECT_NE(errorOf(R"({"devices": {"d": {"target": "tpu", "memory": 1,
                        "capacity": 1, "host": 1, "launches": 1,
                        "links": "no", "source": "s"}}})")
                .find("devices.d.links: there is no link 'no'; "
                      "devices.d.target: expected 'cpu' or 'cuda:sm_N', but "
                      "got 'tpu'"),
            std::string::npos);
  EXPECT_EQ(errorOf(R"({"wires": {}})"),
            "expected the objects 'devices' and 'links', but got 'wires'");
  EXPECT_EQ(errorOf("[]"), "expected an object with 'devices' and 'links'");
  EXPECT_NE(errorOf("{").find("[1:"), std::string::npos);
}

TEST(Machines, UnknownNamesAreToldWithTheNearest) {
  std::string error;
  EXPECT_FALSE(Machines::builtin().link("ib40", error));
  EXPECT_NE(error.find("unknown link 'ib40' (did you mean 'ib400'?); known "
                       "are 'a100-nvlink', "),
            std::string::npos)
      << error;
}

} // namespace
} // namespace tandem
