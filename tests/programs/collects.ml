(* SPDX-License-Identifier: MIT *)
(* Allocates in every request, so that the collector often runs and reads the stack, until it is killed. *)
let rec build n = if n = 0 then [] else string_of_int n :: build (n - 1)
let[@inline never] handle i = List.length (build (1000 + i))
let[@inline never] count i = 1 + handle i

let () =
  Printf.printf "pid %d\n%!" (Unix.getpid ());
  let i = ref 0 in
  while true do
    if count (!i land 63) < 1000 then exit 1;
    incr i
  done
