// SPDX-License-Identifier: Apache-2.0
//
// The calibration kernel: a small circuit that resembles the accelerator. It must not change,
// because its speed is used to compare figures of different days. Every core reads a memory of keys
// and compares each with a few probes. The matches wait in a queue and leave through a tree of
// arbiters.

module core #(
    parameter NUMBER = 0,
    parameter PROBES = 8,
    parameter DEPTH = 1024  // keys
) (
    input clk,
    input [31:0] draw,
    input ready,
    output valid,
    output [31:0] payload
);
    localparam BITS = $clog2(DEPTH);
    reg [63:0] keys[0:DEPTH-1];
    reg [31:0] probes[0:PROBES-1];
    reg [31:0] queue[0:15];
    reg [63:0] row;
    reg [BITS-1:0] place, previous;
    reg [3:0] first, last;
    reg [PROBES-1:0] hits;
    reg found;
    wire full = last + 4'd1 == first;
    integer i;

    initial begin
        for (i = 0; i < DEPTH; i = i + 1)
            keys[i] = {i[31:0] * 32'd2246822519, i[31:0] * 32'd2654435761};
        for (i = 0; i < PROBES; i = i + 1) probes[i] = (NUMBER * PROBES + i) * 32'd3266489917;
        for (i = 0; i < 16; i = i + 1) queue[i] = 0;
        {row, place, previous, first, last, hits, found} = 0;
    end

    assign valid = first != last;
    assign payload = queue[first];

    always @(posedge clk) begin
        if (!full) begin
            row <= keys[place];
            previous <= place;
            place <= place + 1'd1;
            if (&place) begin
                keys[draw[BITS-1:0]] <= {draw, row[31:0]};
                probes[draw[31:32-$clog2(PROBES)]] <= draw;
            end
            for (i = 0; i < PROBES; i = i + 1)
                hits[i] <= row[31:0] - probes[i] + 32'd2000000 < 32'd4000001
                    && row[63:48] - probes[i][15:0] + 16'd4000 < 16'd8001;
            found <= |hits;
            if (found) begin
                queue[last] <= {hits, previous, NUMBER[31-PROBES-BITS:0]};
                last <= last + 1'd1;
            end
        end
        if (valid && ready) first <= first + 1'd1;
    end
endmodule

module arbiter (
    input clk,
    input [1:0] valids,
    input [63:0] payloads,
    output [1:0] readies,
    input ready,
    output reg valid,
    output reg [31:0] payload
);
    reg turn;
    initial {turn, valid, payload} = 0;
    wire open = !valid || ready;
    wire chosen = valids[turn] ? turn : !turn;
    assign readies = open ? {valids[1] && chosen, valids[0] && !chosen} : 2'b0;

    always @(posedge clk) if (open) begin
        valid <= |valids;
        payload <= chosen ? payloads[63:32] : payloads[31:0];
        turn <= !chosen;
    end
endmodule

module calibration #(
    parameter CORES = 16
) (
    input clk,
    output reg [31:0] sum
);
    reg [31:0] draw;
    wire [2*CORES-1:0] valids, readies;
    wire [64*CORES-1:0] payloads;
    genvar g;

    initial begin
        draw = 1;
        sum = 0;
    end

    // Nodes of the tree are numbered from the root, node 1. Node n merges nodes 2 n and 2 n + 1.
    generate
        for (g = 0; g < CORES; g = g + 1) begin : leaf
            core #(.NUMBER(g)) one (
                .clk(clk), .draw(draw ^ (32'd374761393 * g)), .ready(readies[CORES + g]),
                .valid(valids[CORES + g]), .payload(payloads[32 * (CORES + g) +: 32])
            );
        end
        for (g = 1; g < CORES; g = g + 1) begin : node
            arbiter one (
                .clk(clk), .valids(valids[2*g +: 2]), .payloads(payloads[64*g +: 64]),
                .readies(readies[2*g +: 2]), .ready(readies[g]), .valid(valids[g]),
                .payload(payloads[32*g +: 32])
            );
        end
    endgenerate

    assign readies[1] = 1'b1;

    always @(posedge clk) begin
        draw <= {draw[30:0], draw[31] ^ draw[21] ^ draw[1] ^ draw[0]};
        if (valids[1]) sum <= sum + payloads[63:32];
    end
endmodule
