// SPDX-License-Identifier: MIT
// A method whose arguments are an object, a reference to a string, a double and an integer.
#include <cstdio>
#include <string>
#include <unistd.h>

namespace shop
{
struct Base {
	virtual ~Base() = default;
	int kind = 3;
	long id = 0;
};

class Order : public Base
{
      public:
	std::string customer;
	int handle(const std::string &who, double weight, int count);
};

__attribute__((noipa)) int Order::handle(const std::string &who, double weight, int count)
{
	usleep(id % 10 == 4 ? 30000 : 1000);
	return count + (int)weight + (int)who.size();
}
} // namespace shop

int main()
{
	std::printf("pid %d\n", (int)getpid());
	std::fflush(stdout);
	for (long n = 0;; n++) {
		shop::Order order;

		order.id = n;
		order.customer = "customer with a long name, number " + std::to_string(n);
		order.handle("clerk", 0.5, (int)(n % 10));
	}
}
